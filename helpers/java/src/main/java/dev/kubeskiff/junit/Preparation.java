package dev.kubeskiff.junit;

import io.fabric8.kubernetes.client.KubernetesClient;

/** Prepares a control plane once, of which each test then gets a copy: see {@link Skiff#prepared}. It has a constructor without parameters. */
@FunctionalInterface
public interface Preparation {
    /**
     * Makes what the tests begin with.
     *
     * @param client a client of the control plane's administrator, which is closed afterwards
     * @throws Exception where that fails, and with it the tests
     */
    void prepare(KubernetesClient client) throws Exception;
}
