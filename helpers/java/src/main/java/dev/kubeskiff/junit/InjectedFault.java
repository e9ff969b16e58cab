package dev.kubeskiff.junit;

import io.fabric8.kubernetes.client.KubernetesClientException;

/** A fault that a control plane has, until it is closed. */
public final class InjectedFault implements AutoCloseable {
    private static final int NOT_FOUND = 404;

    private final ControlPlane plane;
    private final String path;

    InjectedFault(ControlPlane plane, String path) {
        this.plane = plane;
        this.path = path;
    }

    /**
     * How often it took effect.
     *
     * @return the number of requests or watches
     */
    public int hits() {
        return ((Number) plane.ask("GET", path, null).get("hits")).intValue();
    }

    /** Has no request meet it any more; stalled watches go on. It may be closed again. */
    @Override
    public void close() {
        try {
            plane.ask("DELETE", path, null);
        } catch (KubernetesClientException refused) {
            if (refused.getCode() != NOT_FOUND) {
                throw refused;
            }
        }
    }
}
