package dev.kubeskiff.junit;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;

/**
 * A running server for a test, or a copy in one. Nobody else uses it; whoever has its kubeconfig may do everything in it. It ends when it is
 * closed, or with this process, however that ends.
 */
public final class ControlPlane implements AutoCloseable {
    /** How many lines of what the server says are kept: the newest. */
    private static final int LINES_MAX = 10_000;
    /** How long a server may take to end before it is killed. */
    private static final long STOP_SECONDS_MAX = 10;
    /** Of the administrator's key; fabric8's client takes every key in PKCS #8 for one of RSA unless it is told. */
    static final String KEY_ALGORITHM = "EC";

    private static final String FAULTS = "/skiff/v1/faults";
    private static final String PLANES = "/skiff/v1/planes";
    /** What the one is called that a process begins with. */
    private static final String MAIN = "main";
    private static final int NOT_FOUND = 404;

    private final Process server;
    private final Lines said;
    private final String url;
    private final Path kubeconfig;
    /** Of a copy, the one that has the server; of others {@code null}. */
    private final ControlPlane first;
    /** What it is called in the process of the server. */
    private final String name;
    /** {@code null} until something is asked that is not of Kubernetes. */
    private Api api;

    private ControlPlane(Process server, Lines said, String url, Path kubeconfig) {
        this.server = server;
        this.said = said;
        this.url = url;
        this.kubeconfig = kubeconfig;
        this.first = null;
        this.name = MAIN;
    }

    private ControlPlane(ControlPlane first, String name, String url, Path kubeconfig) {
        this.server = first.server;
        this.said = first.said;
        this.url = url;
        this.kubeconfig = kubeconfig;
        this.first = first;
        this.name = name;
    }

    /**
     * Starts a control plane of its own, with its objects in memory, and waits until it is ready.
     *
     * @param crds files or folders with definitions, which are served before it is ready
     * @param arguments further arguments of {@code skiff serve}
     * @return the control plane
     * @throws IllegalStateException if there is no program, or it does not start
     */
    public static ControlPlane start(List<String> crds, List<String> arguments) {
        Path folder = Path.of(System.getProperty("java.io.tmpdir"), "skiff-" + UUID.randomUUID());
        List<String> command = new ArrayList<>(List.of(
                Program.find().toString(), "serve", "--temporary=" + ProcessHandle.current().pid(),
                "--listen", "127.0.0.1:0", "--store", "memory", "--data-dir", folder.toString()));
        crds.forEach(path -> command.addAll(List.of("--crds", path)));
        command.addAll(arguments);
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().put("SKIFF_TRACE", "requests");
        try {
            Process server = builder.start();
            Lines said = new Lines(server.getErrorStream());
            // It says nothing more than this, so nothing has to read on.
            String line = reader(server.getInputStream()).readLine();
            if (line == null || !line.startsWith("ready ")) {
                server.destroyForcibly();
                said.finish();
                throw new IllegalStateException("skiff did not start: " + String.join("\n", said.all()));
            }
            return new ControlPlane(server, said, line.substring("ready ".length()), folder.resolve("kubeconfig"));
        } catch (IOException error) {
            throw new UncheckedIOException("skiff can't be run", error);
        }
    }

    /**
     * Where it serves.
     *
     * @return a URL, as in {@code https://127.0.0.1:34567}
     */
    public String url() {
        return url;
    }

    /**
     * The kubeconfig of its administrator, a file that is there until the control plane ends.
     *
     * @return the path of the file
     */
    public Path kubeconfig() {
        return kubeconfig;
    }

    /**
     * Variables by which a program finds this control plane.
     *
     * @return names and values
     */
    public Map<String, String> environment() {
        return Map.of("KUBECONFIG", kubeconfig.toString());
    }

    /**
     * How fabric8's client reaches it as its administrator.
     *
     * @return a configuration of its own for each call
     */
    public Config config() {
        try {
            Config config = Config.fromKubeconfig(Files.readString(kubeconfig));
            config.setClientKeyAlgo(KEY_ALGORITHM);
            return config;
        } catch (IOException error) {
            throw new UncheckedIOException("the control plane has ended", error);
        }
    }

    /**
     * A client of its administrator, which its user closes.
     *
     * @return a client of its own for each call
     */
    public KubernetesClient client() {
        return new KubernetesClientBuilder().withConfig(config()).build();
    }

    /**
     * What the server has said so far: a line a request, with verb, path, code, time, user, client and what was wrong.
     *
     * @return the lines; of very much, the newest
     */
    public List<String> log() {
        if (first == null) {
            return said.all();
        }
        String prefix = "[" + name + "] ";
        return said.all().stream().filter(line -> line.startsWith(prefix)).map(line -> line.substring(prefix.length())).toList();
    }

    /**
     * A copy of this control plane as it is now, with its objects, definitions and users, in milliseconds. Neither sees what
     * becomes of the other. It ends when it is closed, or with the first one.
     *
     * @return the copy
     */
    public ControlPlane fork() {
        return forkOf(Map.of("from", name));
    }

    /**
     * A copy of this control plane as {@link #fork()} makes it, with controllers and nodes of its own.
     *
     * @param workloads what runs in it beside its requests
     * @return the copy
     * @throws io.fabric8.kubernetes.client.KubernetesClientException if a controller or the nodes are not known
     */
    public ControlPlane fork(Workloads workloads) {
        return forkOf(workloads.body(name));
    }

    private ControlPlane forkOf(Map<String, Object> wanted) {
        ControlPlane host = first == null ? this : first;
        Map<String, Object> made = host.ask("POST", PLANES, wanted);
        String madeName = (String) made.get("name");
        Path file = host.kubeconfig.resolveSibling(madeName + ".kubeconfig");
        try {
            createPrivate(file);
            Files.writeString(file, (String) made.get("kubeconfig"));
        } catch (IOException error) {
            throw new UncheckedIOException("the kubeconfig of a copy can't be written", error);
        }
        return new ControlPlane(host, madeName, (String) made.get("url"), file);
    }

    /**
     * What time it is for this control plane alone.
     *
     * @return its clock
     */
    public Clock clock() {
        return new Clock(this);
    }

    /**
     * Has requests fail, wait or get old answers, until the fault is closed.
     *
     * @param fault what happens to which of them
     * @return the fault that they meet
     * @throws io.fabric8.kubernetes.client.KubernetesClientException if it makes no sense
     */
    public InjectedFault inject(Fault fault) {
        return new InjectedFault(this, FAULTS + "/" + ask("POST", FAULTS, fault.body()).get("id"));
    }

    /** The JSON that a request to what it has beside the API of Kubernetes is answered with. */
    Map<String, Object> ask(String method, String path, Map<String, Object> body) {
        return api().send(method, path, body);
    }

    private synchronized Api api() {
        if (api == null) {
            try {
                api = new Api(url, kubeconfig);
            } catch (IOException error) {
                throw new UncheckedIOException("the control plane has ended", error);
            }
        }
        return api;
    }

    /** Ends the control plane, and removes what it had. It may be closed again. */
    @Override
    public void close() {
        if (first != null) {
            closeFork();
            return;
        }
        server.destroy();
        try {
            if (!server.waitFor(STOP_SECONDS_MAX, TimeUnit.SECONDS)) {
                server.destroyForcibly().waitFor();
            }
            said.finish();
            removeFolder();
        } catch (InterruptedException interrupted) {
            server.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }

    /** Makes a file for this user alone. On Windows, which has no modes, those may read it who may read its folder. */
    private static void createPrivate(Path file) throws IOException {
        if (file.getFileSystem().supportedFileAttributeViews().contains("posix")) {
            Files.createFile(file, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
        } else {
            Files.createFile(file);
        }
    }

    /** Removes what the server leaves behind that is killed, as on Windows each is. */
    private void removeFolder() {
        try (Stream<Path> left = Files.walk(kubeconfig.getParent())) {
            left.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
        } catch (IOException | UncheckedIOException gone) {
            // It has removed the folder itself.
        }
    }

    /** Gives the memory of a copy back. */
    private void closeFork() {
        try {
            Files.deleteIfExists(kubeconfig);
            first.ask("DELETE", PLANES + "/" + name, null);
        } catch (IOException error) {
            throw new UncheckedIOException("the kubeconfig of a copy can't be removed", error);
        } catch (KubernetesClientException refused) {
            if (refused.getCode() != NOT_FOUND) {
                throw refused;
            }
        }
    }

    private static BufferedReader reader(InputStream stream) {
        return new BufferedReader(new InputStreamReader(stream, StandardCharsets.UTF_8));
    }

    /** Takes what a server says as it comes, so that it never waits. */
    private static final class Lines {
        private final Deque<String> newest = new ArrayDeque<>();
        private final Thread reader;

        Lines(InputStream stream) {
            reader = new Thread(() -> read(stream), "skiff-log");
            reader.setDaemon(true);
            reader.start();
        }

        private void read(InputStream stream) {
            try (BufferedReader lines = reader(stream)) {
                for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                    add(line);
                }
            } catch (IOException error) {
                add("skiff's output can't be read: " + error.getMessage());
            }
        }

        private synchronized void add(String line) {
            newest.addLast(line);
            if (newest.size() > LINES_MAX) {
                newest.removeFirst();
            }
        }

        synchronized List<String> all() {
            return List.copyOf(newest);
        }

        /** Waits until there will be no more. */
        void finish() {
            try {
                reader.join();
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
