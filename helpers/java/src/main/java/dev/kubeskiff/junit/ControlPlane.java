package dev.kubeskiff.junit;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeUnit;

import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;

/**
 * A running server for a test. Nobody else uses it; whoever has its kubeconfig may do everything in it. It ends when it is
 * closed, or with this process, however that ends.
 */
public final class ControlPlane implements AutoCloseable {
    /** How many lines of what the server says are kept: the newest. */
    private static final int LINES_MAX = 10_000;
    /** How long a server may take to end before it is killed. */
    private static final long STOP_SECONDS_MAX = 10;
    /** Of the administrator's key; fabric8's client takes every key in PKCS #8 for one of RSA unless it is told. */
    private static final String KEY_ALGORITHM = "EC";

    private final Process server;
    private final Lines said;
    private final String url;
    private final Path kubeconfig;

    private ControlPlane(Process server, Lines said, String url, Path kubeconfig) {
        this.server = server;
        this.said = said;
        this.url = url;
        this.kubeconfig = kubeconfig;
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
                Program.find().toString(), "serve", "--temporary", "--listen", "127.0.0.1:0", "--store", "memory",
                "--data-dir", folder.toString()));
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
        return said.all();
    }

    /** Ends the control plane, and removes what it had. It may be closed again. */
    @Override
    public void close() {
        server.destroy();
        try {
            if (!server.waitFor(STOP_SECONDS_MAX, TimeUnit.SECONDS)) {
                server.destroyForcibly().waitFor();
            }
            said.finish();
        } catch (InterruptedException interrupted) {
            server.destroyForcibly();
            Thread.currentThread().interrupt();
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
