/** What a control plane is to have. */
export interface Options {
  /** Files or folders with definitions to register before it is ready. */
  crds?: readonly (string | URL)[];
  /** Further arguments of `skiff serve`. */
  arguments?: readonly string[];
  /** Further variables for the server. */
  environment?: Readonly<Record<string, string>>;
}

/** What the control plane of a test is to have. */
export interface TestOptions extends Options {
  /** Whether the test starts a server of its own, where it would get a control plane in one that tests share. */
  ownProcess?: boolean;
}

/**
 * What runs in a copy beside its requests, as with `skiff serve`. Where nothing is said, that is what runs in the control plane
 * that was started.
 */
export interface Workloads {
  /** What `*` stands for among the controllers: what an API server needs, or all, with nodes that are simulated. */
  profile?: 'server' | 'cluster';
  /** By kube-controller-manager's names: `*` for all of the profile, `NAME`, `-NAME` for all but that. */
  controllers?: readonly string[];
  /** Nodes that nothing is behind, as in `3,cpu=8,label=zone=a`. */
  simulateNodes?: string;
}

/** Which requests a fault is for: all that is given must fit. */
export interface Match {
  verbs?: readonly ('get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection' | (string & {}))[];
  /** The API group; `''` is that of the core. */
  group?: string;
  /** The plural name. */
  resource?: string;
  /** As in `status`; `''` is the object itself. */
  subresource?: string;
  namespace?: string;
  name?: string;
  user?: string;
  /** A path, or what paths begin with before a `*`: this alone is for those that are not resources. */
  path?: string;
}

/** An error that Kubernetes answers with. */
export interface Failure {
  code: 401 | 403 | 404 | 409 | 410 | 429 | 500 | 503 | 504;
  /** Where a code has several. */
  reason?: 'Conflict' | 'AlreadyExists' | 'Expired' | 'Gone' | 'InternalError' | 'ServerTimeout' | (string & {});
  /** In place of Kubernetes' words. */
  message?: string;
  /** When the client may try again. */
  retryAfterSeconds?: number;
}

/** How a watch ends: as at its time-out, with its connection, by sending nothing more, or with an ERROR event (410). */
export type End = 'closed' | 'cut' | 'stalled' | 'expired';

/** A length of time: milliseconds, or as Go writes it (`1m30s`). */
export type Time = number | string;

/** What happens to requests: one of `error`, `watch`, `stale`, `lose` and `conflict`, or a `delay` alone. */
export interface Fault {
  match?: Match;
  /** How many requests that fit go by first. */
  skip?: number;
  /** How many meet it after that; all, if it is left out. */
  times?: number;
  /** How likely each of them meets it, from 0 to 1. */
  probability?: number;
  /** What the chances begin with: the same one gives the same ones. */
  seed?: number;
  /** How long they wait, before anything else. */
  delay?: Time;
  /** What they are answered with: a code, or more. */
  error?: Failure['code'] | Failure;
  /** How watches end, those too that are open. */
  watch?: End | { end: End; afterEvents?: number; after?: Time };
  /** Lists and watches at `resourceVersion=0` begin with the state of so many changes ago. */
  stale?: number;
  /** The connection is cut in place of an answer: before anything is done, or after. */
  lose?: 'request' | 'answer';
  /** The object is written before: an update of what the client has read conflicts. */
  conflict?: true;
}

/** A fault that a control plane has. */
export class InjectedFault implements AsyncDisposable {
  private constructor();
  /** How often it took effect. */
  hits(): Promise<number>;
  /** Has no request meet it any more; stalled watches go on. It may be called again. */
  remove(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** What time it is for one control plane: for creation times, tokens, events and leases. Nobody has to sleep. */
export class Clock {
  private constructor();
  /** The time that it shows. */
  now(): Promise<Date>;
  /** Has it show a time, and go on from there. */
  set(time: Date): Promise<void>;
  /** Moves it on, or back. */
  advance(by: Time): Promise<void>;
  /** Has it stand still, until `run`. */
  freeze(): Promise<void>;
  /** Has it go on from what it shows. */
  run(): Promise<void>;
  /** Makes it that of the machine. */
  reset(): Promise<void>;
}

/** A running control plane: a server, or a part of one. Nobody else uses it; whoever has its kubeconfig may do everything in it. */
export class ControlPlane implements AsyncDisposable {
  private constructor();
  /** Where it serves, as in `https://127.0.0.1:34567`. */
  readonly url: string;
  /** The path of a kubeconfig of its administrator, which is there until the control plane ends. */
  readonly kubeconfig: string;
  /** Variables by which a program finds this control plane. */
  readonly environment: Readonly<{ KUBECONFIG: string }>;
  /**
   * What the server has said so far: a line a request, with verb, path, code, time, user, client and what was wrong. Of very
   * much, the newest lines.
   */
  readonly log: readonly string[];
  /** Has a `KubeConfig` of `@kubernetes/client-node` read how to reach this control plane, and returns it. */
  load<Config extends { loadFromFile(file: string): void }>(config: Config): Config;
  /**
   * Has requests fail, wait or get old answers, until the fault is removed.
   *
   * @throws where the fault makes no sense
   */
  inject(fault: Fault): Promise<InjectedFault>;
  /** What time it is for this control plane alone. */
  readonly clock: Clock;
  /**
   * A copy of this control plane as it is now, with its objects, definitions and users, in milliseconds. Neither sees what
   * becomes of the other. It ends with `stop`, or with the first one.
   *
   * @throws where `workloads` are not known
   */
  fork(workloads?: Workloads): Promise<ControlPlane>;
  /** Ends the control plane, and removes what it had. It may be called again. */
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Starts a control plane of its own, with its objects in memory, and waits until it is ready. It ends with `stop`, or with
 * this process, however that ends.
 *
 * @throws where there is no program, or where it does not start, with what it said
 */
export function start(options?: Options): Promise<ControlPlane>;

/**
 * A control plane for a test, which it stops. Those of a process that have the same options are in one server, which is started
 * by the first and ends when nobody has used it for a while; so each is there in milliseconds.
 *
 * @throws as `start`
 */
export function plane(options?: TestOptions): Promise<ControlPlane>;

/** Ends the servers of `plane` that nobody uses, without waiting. */
export function endShared(): Promise<void>;

/** What a test gets. */
export interface Context {
  /** A control plane for this test alone. */
  skiff: ControlPlane;
}

/**
 * A test with a control plane of its own, for jest, node:test and other runners: `test('name', withSkiff(async ({ skiff }) => {
 * … }))`. What else the runner gives, as the row of a table, comes after. Where the test fails, what the server was asked is
 * printed.
 */
export function withSkiff<Row extends unknown[]>(
  body: (context: Context, ...row: Row) => unknown,
): (...row: Row) => Promise<void>;
export function withSkiff<Row extends unknown[]>(
  options: TestOptions,
  body: (context: Context, ...row: Row) => unknown,
): (...row: Row) => Promise<void>;

/**
 * A test with a copy of a prepared control plane, which is started by the first test that needs it: `test('name',
 * withFork(prepared, async ({ skiff }) => { … }))`, with `const prepared = () => (started ??= prepare())`.
 */
export function withFork<Row extends unknown[]>(
  prepared: () => ControlPlane | Promise<ControlPlane>,
  body: (context: Context, ...row: Row) => unknown,
): (...row: Row) => Promise<void>;
export function withFork<Row extends unknown[]>(
  prepared: () => ControlPlane | Promise<ControlPlane>,
  workloads: Workloads,
  body: (context: Context, ...row: Row) => unknown,
): (...row: Row) => Promise<void>;

/** Prints what a control plane was asked. */
export function tell(skiff: ControlPlane, name?: string): void;

/** The path of the program: the one that SKIFF names, else that of the package for this machine, else that on the PATH. */
export function program(): string;
