package dev.kubeskiff.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;

import io.fabric8.kubernetes.client.KubernetesClient;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** A hundred small tests side by side. */
@Skiff
@Execution(ExecutionMode.CONCURRENT)
class ParallelTest {
    /** The same with a server for each, to be measured. */
    @Skiff(ownProcess = true)
    @Tag("on-purpose")
    static class OwnProcess extends ParallelTest {
    }

    @RepeatedTest(100)
    void aTestSeesItsOwnObjectsAlone(KubernetesClient client, RepetitionInfo test) {
        String name = "settings-" + test.getCurrentRepetition();
        var maps = client.configMaps().inNamespace("default");
        maps.resource(SkiffTest.named(name)).create();
        List<String> names = maps.list().getItems().stream()
                .map(map -> map.getMetadata().getName())
                .filter(found -> !found.equals("kube-root-ca.crt"))
                .toList();
        assertEquals(List.of(name), names);
    }
}
