/** What a control plane is to have. */
export interface Options {
  /** Files or folders with definitions to register before it is ready. */
  crds?: readonly (string | URL)[];
  /** Further arguments of `skiff serve`. */
  arguments?: readonly string[];
  /** Further variables for the server. */
  environment?: Readonly<Record<string, string>>;
}

/** A running control plane. Nobody else uses it; whoever has its kubeconfig may do everything in it. */
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
  options: Options,
  body: (context: Context, ...row: Row) => unknown,
): (...row: Row) => Promise<void>;

/** Prints what a control plane was asked. */
export function tell(skiff: ControlPlane, name?: string): void;

/** The path of the program: the one that SKIFF names, else that of the package for this machine, else that on the PATH. */
export function program(): string;
