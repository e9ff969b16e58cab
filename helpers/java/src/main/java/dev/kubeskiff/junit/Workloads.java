package dev.kubeskiff.junit;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * What runs in a copy of a control plane beside its requests, as with {@code skiff serve}. Where nothing is said, that is what
 * runs in the control plane that was started.
 */
public final class Workloads {
    private final Map<String, Object> said;

    private Workloads(Map<String, Object> said) {
        this.said = said;
    }

    /**
     * What an API server needs.
     *
     * @return the controllers that {@code skiff serve} has without a word
     */
    public static Workloads server() {
        return new Workloads(Map.of("profile", "server"));
    }

    /**
     * All controllers, and nodes that are simulated.
     *
     * @return those of the profile {@code cluster}
     */
    public static Workloads cluster() {
        return new Workloads(Map.of("profile", "cluster"));
    }

    /**
     * The same with the controllers that are named.
     *
     * @param names by kube-controller-manager's names: {@code *} for all of the profile, {@code NAME}, {@code -NAME} for all but that
     * @return what runs then
     */
    public Workloads controllers(String... names) {
        return with("controllers", List.of(names));
    }

    /**
     * The same with nodes that nothing is behind.
     *
     * @param plan as in {@code 3,cpu=8,label=zone=a}
     * @return what runs then
     */
    public Workloads simulateNodes(String plan) {
        return with("simulateNodes", plan);
    }

    private Workloads with(String field, Object value) {
        Map<String, Object> more = new TreeMap<>(said);
        more.put(field, value);
        return new Workloads(more);
    }

    /** The request for a copy of the control plane of that name. */
    Map<String, Object> body(String from) {
        return with("from", from).said;
    }
}
