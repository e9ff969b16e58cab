package dev.kubeskiff.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientException;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.platform.testkit.engine.EngineTestKit;

/** What tests get from {@link Skiff}, with fabric8's client. */
@Skiff
@Isolated("it looks at standard error")
class SkiffTest {
    private static final String DEFINITIONS = "../../crd-examples/rules/crd.yaml";
    private static final long GONE_MILLIS_MAX = 60_000;

    @Test
    void aTestGetsWhatItAsksFor(KubernetesClient client, ControlPlane plane) throws InterruptedException {
        client.configMaps().inNamespace("default").resource(named("settings")).create();
        assertEquals(plane.url() + "/", client.getMasterUrl().toString());
        assertNull(client.configMaps().inNamespace("default").withName("none").get());
        // A line is told behind its answer.
        while (plane.log().stream().noneMatch(line -> line.startsWith("get /api/v1/namespaces/default/configmaps/none 404 "))) {
            Thread.sleep(5);
        }
    }

    @Test
    @Skiff(crds = DEFINITIONS)
    void definitionsAreServedFromTheStart(KubernetesClient client) {
        assertTrue(client.genericKubernetesResources("rules.example.com/v1", "Release").list().getItems().isEmpty());
    }

    @Test
    void nothingIsLeftAtTheEnd() {
        ControlPlane plane = ControlPlane.start(List.of(), List.of("--authorization-mode=RBAC"));
        assertTrue(Files.exists(plane.kubeconfig()));
        plane.close();
        assertFalse(Files.exists(plane.kubeconfig().getParent()));
        plane.close();
    }

    @Test
    void whatDoesNotStartSaysWhy() {
        List<String> crds = List.of("nowhere");
        var failure = assertThrows(IllegalStateException.class, () -> ControlPlane.start(crds, List.of()));
        assertTrue(failure.getMessage().contains("nowhere"), failure.getMessage());
    }

    @Test
    void nothingIsLeftAfterAKill() throws Exception {
        Process killed = new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp", System.getProperty("surefire.test.class.path", System.getProperty("java.class.path")),
                Waiting.class.getName()).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        Path kubeconfig = Path.of(killed.inputReader().readLine());
        assertTrue(Files.exists(kubeconfig));
        killed.destroyForcibly().waitFor();
        long begun = System.currentTimeMillis();
        while (Files.exists(kubeconfig.getParent())) {
            assertTrue(System.currentTimeMillis() - begun < GONE_MILLIS_MAX, kubeconfig + " is there");
            Thread.sleep(10);
        }
    }

    /** A program that waits to be killed. */
    static final class Waiting {
        public static void main(String[] arguments) throws InterruptedException {
            ControlPlane plane = ControlPlane.start(List.of(), List.of());
            System.out.println(plane.kubeconfig());
            Thread.sleep(GONE_MILLIS_MAX);
        }
    }

    @Test
    void aFailedTestIsToldWhatItsControlPlaneAloneWasAsked() {
        for (Class<?> failing : List.of(Failing.class, FailingPrepared.class)) {
            String text = told(failing);
            assertEquals(1, text.split("skiff: https://127.0.0.1:", -1).length - 1, text);
            assertTrue(text.contains(" was asked\n"), text);
            assertTrue(text.contains("get /api/v1/namespaces/default/configmaps/own 404 "), text);
            assertFalse(text.contains("configmaps/others"), text);
        }
    }

    /** What is told of a class with one test that fails and one that passes. */
    private static String told(Class<?> tests) {
        PrintStream before = System.err;
        ByteArrayOutputStream told = new ByteArrayOutputStream();
        System.setErr(new PrintStream(told, true, StandardCharsets.UTF_8));
        try {
            EngineTestKit.engine("junit-jupiter").selectors(selectClass(tests)).execute()
                    .testEvents().assertStatistics(statistics -> statistics.failed(1).succeeded(1));
        } finally {
            System.setErr(before);
        }
        return told.toString(StandardCharsets.UTF_8);
    }

    @Skiff
    @Tag("on-purpose")
    static class Failing {
        @Test
        void fails(ControlPlane plane) throws InterruptedException {
            try (ControlPlane others = plane.fork()) {
                ask(others, "others");
            }
            ask(plane, "own");
            assertEquals("", plane.url());
        }

        @Test
        void passes(ControlPlane plane) {
            assertFalse(plane.environment().isEmpty());
        }
    }

    @Skiff(prepared = ForkTest.Prepared.class)
    static class FailingPrepared extends Failing {
    }

    /** Asks for what is not there, and waits until that is told, which is behind the answer. */
    private static void ask(ControlPlane plane, String name) throws InterruptedException {
        String path = "/api/v1/namespaces/default/configmaps/" + name;
        assertThrows(KubernetesClientException.class, () -> plane.ask("GET", path, null));
        while (plane.log().stream().noneMatch(line -> line.startsWith("get " + path + " 404 "))) {
            Thread.sleep(5);
        }
    }

    /** The folders of the servers, as the tests of {@link Sharing} have found them. */
    private static final Map<String, Path> FOLDERS = new ConcurrentHashMap<>();

    @Test
    void testsWithTheSameOptionsHaveOneServer() {
        EngineTestKit.engine("junit-jupiter").selectors(selectClass(Sharing.class)).execute()
                .testEvents().assertStatistics(statistics -> statistics.succeeded(5));
        assertEquals(FOLDERS.get("one"), FOLDERS.get("two"));
        assertEquals(FOLDERS.get("one"), FOLDERS.get("prepared"));
        assertEquals(3, Set.copyOf(FOLDERS.values()).size());
        FOLDERS.values().forEach(folder -> assertFalse(Files.exists(folder), "they end with the run"));
    }

    @Skiff
    @Tag("on-purpose")
    static class Sharing {
        @Test
        void one(ControlPlane plane) {
            FOLDERS.put("one", plane.kubeconfig().getParent());
        }

        @Test
        void two(ControlPlane plane) {
            FOLDERS.put("two", plane.kubeconfig().getParent());
        }

        @Test
        @Skiff(prepared = ForkTest.Prepared.class)
        void prepared(ControlPlane plane) {
            FOLDERS.put("prepared", plane.kubeconfig().getParent());
        }

        @Test
        @Skiff(arguments = "--authorization-mode=RBAC")
        void otherArguments(ControlPlane plane) {
            FOLDERS.put("arguments", plane.kubeconfig().getParent());
        }

        @Test
        @Skiff(ownProcess = true)
        void own(ControlPlane plane) {
            FOLDERS.put("own", plane.kubeconfig().getParent());
        }
    }

    static ConfigMap named(String name) {
        return new ConfigMapBuilder().withNewMetadata().withName(name).endMetadata().build();
    }
}
