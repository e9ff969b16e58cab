package dev.kubeskiff.junit;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Gives each test a control plane of its own, as a parameter: a {@link ControlPlane}, or a
 * {@link io.fabric8.kubernetes.client.KubernetesClient} of it, which is closed with the test.
 *
 * <pre>{@code
 * @Skiff(crds = "config/crd")
 * class BoatTest {
 *     @Test
 *     void settingsAreKept(KubernetesClient client) {
 *         …
 *     }
 * }
 * }</pre>
 *
 * <p>All tests of a run that have the same definitions and arguments have one server, in which each gets a control plane, in
 * milliseconds. Where a test fails, what its control plane was asked goes to standard error. On a method, it says more than that of the class.
 */
@Documented
@Inherited
@Target({ElementType.TYPE, ElementType.METHOD})
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(SkiffExtension.class)
public @interface Skiff {
    /**
     * Files or folders with definitions, which are served from the start.
     *
     * @return paths, seen from the folder in which the tests run
     */
    String[] crds() default {};

    /**
     * Further arguments of {@code skiff serve}.
     *
     * @return the arguments
     */
    String[] arguments() default {};

    /**
     * What prepares a control plane once for the whole run; each test then gets a copy of it, in milliseconds.
     *
     * @return a class that prepares it; this interface itself where nothing is prepared
     */
    Class<? extends Preparation> prepared() default Preparation.class;

    /**
     * Whether each test starts a server of its own, where it would get a control plane in one that tests share.
     *
     * @return whether it does
     */
    boolean ownProcess() default false;
}
