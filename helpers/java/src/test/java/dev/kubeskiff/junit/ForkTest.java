package dev.kubeskiff.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.time.Duration;
import java.time.Instant;
import java.util.List;

import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientException;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** Copies of a prepared control plane, faults and clocks. */
@Skiff(prepared = ForkTest.Prepared.class)
@Execution(ExecutionMode.CONCURRENT)
class ForkTest {
    /** What each test begins with. */
    public static final class Prepared implements Preparation {
        @Override
        public void prepare(KubernetesClient client) {
            client.configMaps().inNamespace("default").resource(SkiffTest.named("prepared")).create();
        }
    }

    @RepeatedTest(100)
    void aCopyHasAFaultAndAClockOfItsOwn(ControlPlane plane, KubernetesClient client, RepetitionInfo test) {
        int year = 2030 + test.getCurrentRepetition();
        plane.clock().set(Instant.parse(year + "-01-01T00:00:00Z"));
        String name = "settings-" + test.getCurrentRepetition();
        var maps = client.configMaps().inNamespace("default");
        try (InjectedFault fault = plane.inject(Fault.error(403).verbs("create").resource("configmaps").times(1))) {
            KubernetesClientException refused =
                    assertThrows(KubernetesClientException.class, () -> maps.resource(SkiffTest.named(name)).create());
            assertEquals(403, refused.getCode());
            var made = maps.resource(SkiffTest.named(name)).create();
            assertTrue(made.getMetadata().getCreationTimestamp().startsWith(year + "-"));
            assertEquals(1, fault.hits());
        }
        List<String> names = maps.list().getItems().stream()
                .map(map -> map.getMetadata().getName())
                .filter(found -> !found.equals("kube-root-ca.crt"))
                .toList();
        assertEquals(List.of("prepared", name), names);
    }

    @Test
    void aCopyOfACopyKnowsWhatItWasAsked(ControlPlane plane) throws InterruptedException {
        ControlPlane second = plane.fork();
        try (KubernetesClient client = second.client()) {
            client.configMaps().inNamespace("default").withName("none").get();
        }
        while (second.log().stream().noneMatch(line -> line.startsWith("get /api/v1/namespaces/default/configmaps/none 404"))) {
            Thread.sleep(1);
        }
        assertTrue(plane.log().stream().noneMatch(line -> line.contains("none")));
        second.close();
        second.close();
        assertFalse(Files.exists(second.kubeconfig()));
    }

    @Test
    void aCopyHasControllersAndNodesOfItsOwn(ControlPlane plane, KubernetesClient client) throws InterruptedException {
        Workloads workloads = Workloads.cluster().controllers("*", "-cronjob").simulateNodes("1,cpu=4");
        try (ControlPlane large = plane.fork(workloads); KubernetesClient of = large.client()) {
            while (of.nodes().withName("node-0").get() == null) {
                Thread.sleep(1);
            }
            assertEquals("4", of.nodes().withName("node-0").get().getStatus().getCapacity().get("cpu").toString());
        }
        assertTrue(client.nodes().list().getItems().isEmpty());
        Workloads unknown = Workloads.server().controllers("nonsense");
        assertThrows(KubernetesClientException.class, () -> plane.fork(unknown));
    }

    @Test
    void aClockIsFrozenMovedAndReset(ControlPlane plane) {
        Clock clock = plane.clock();
        Instant begin = Instant.parse("2031-02-03T04:05:06Z");
        clock.freeze();
        clock.set(begin);
        clock.advance(Duration.ofMinutes(90));
        assertEquals(begin.plus(Duration.ofMinutes(90)), clock.now());
        clock.run();
        clock.reset();
        assertTrue(Duration.between(clock.now(), Instant.now()).abs().compareTo(Duration.ofMinutes(1)) < 0);
    }

    @Test
    void faultsSayAllThatTheServerTakes(ControlPlane plane) {
        for (Fault fault : List.of(
                Fault.watch(Fault.End.EXPIRED).afterEvents(3).after(Duration.ZERO).verbs("watch").group("")
                        .resource("pods").namespace("a").name("b").user("c").path("/api/*"),
                Fault.watch(Fault.End.CLOSED),
                Fault.watch(Fault.End.CUT).after(Duration.ofSeconds(90)),
                Fault.watch(Fault.End.STALLED),
                Fault.error(429).retryAfterSeconds(3).message("slow down").subresource("status").delayed(Duration.ofMillis(1)),
                Fault.error(410).reason("Gone").skip(1).times(2),
                Fault.lose(Fault.Lost.ANSWER).probability(0.5, 7),
                Fault.lose(Fault.Lost.REQUEST),
                Fault.delay(Duration.ofMillis(250)),
                Fault.stale(5),
                Fault.conflict())) {
            try (InjectedFault injected = plane.inject(fault)) {
                assertEquals(0, injected.hits());
            }
        }
    }

    @Test
    void aFaultThatMakesNoSenseIsRefused(ControlPlane plane) {
        KubernetesClientException refused =
                assertThrows(KubernetesClientException.class, () -> plane.inject(Fault.conflict().reason("Gone")));
        assertTrue(refused.getMessage().contains("unknown field `reason`"), refused.getMessage());
    }
}
