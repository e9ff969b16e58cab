package dev.kubeskiff.junit;

import java.util.List;
import java.util.function.Function;
import java.util.stream.Stream;

import io.fabric8.kubernetes.client.KubernetesClient;
import org.junit.jupiter.api.extension.AfterTestExecutionCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ExtensionContext.Store;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.platform.commons.support.AnnotationSupport;
import org.junit.platform.commons.support.ReflectionSupport;

/** Does what {@link Skiff} says. */
public final class SkiffExtension implements ParameterResolver, AfterTestExecutionCallback {
    private static final Namespace OURS = Namespace.create(SkiffExtension.class);

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        Class<?> type = parameter.getParameter().getType();
        return type == ControlPlane.class || type == KubernetesClient.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        ControlPlane plane = store(context).computeIfAbsent(ControlPlane.class, key -> open(context), ControlPlane.class);
        if (parameter.getParameter().getType() == ControlPlane.class) {
            return plane;
        }
        return store(context).computeIfAbsent(KubernetesClient.class, key -> plane.client(), KubernetesClient.class);
    }

    @Override
    public void afterTestExecution(ExtensionContext context) {
        ControlPlane plane = store(context).get(ControlPlane.class, ControlPlane.class);
        if (plane != null && context.getExecutionException().isPresent()) {
            System.err.println("skiff: " + plane.url() + " was asked\n" + String.join("\n", plane.log()));
        }
    }

    /** What is in it is closed at the end of the test, what came last first. */
    private static Store store(ExtensionContext context) {
        return context.getStore(OURS);
    }

    private static ControlPlane open(ExtensionContext context) {
        List<String> crds = all(context, Skiff::crds);
        List<String> arguments = all(context, Skiff::arguments);
        Class<? extends Preparation> preparation = annotations(context).map(Skiff::prepared)
                .filter(prepared -> prepared != Preparation.class)
                .reduce(Preparation.class, (before, after) -> after);
        boolean isPrepared = preparation != Preparation.class;
        if (annotations(context).anyMatch(Skiff::ownProcess)) {
            ControlPlane plane = ControlPlane.start(crds, arguments);
            return isPrepared ? prepared(preparation, plane) : plane;
        }
        // One for the whole run, as long as what it begins with is the same. What came last is closed first.
        Store run = context.getRoot().getStore(OURS);
        List<Object> options = List.of(crds, arguments);
        ControlPlane server =
                run.computeIfAbsent(options, same -> ControlPlane.start(crds, arguments), ControlPlane.class);
        if (!isPrepared) {
            return server.fork();
        }
        Object key = List.of(preparation, options);
        return run.computeIfAbsent(key, same -> prepared(preparation, server.fork()), ControlPlane.class).fork();
    }

    private static ControlPlane prepared(Class<? extends Preparation> preparation, ControlPlane plane) {
        try (KubernetesClient client = plane.client()) {
            ReflectionSupport.newInstance(preparation).prepare(client);
            return plane;
        } catch (Exception failed) {
            plane.close();
            throw new IllegalStateException(preparation.getName() + " can't prepare a control plane", failed);
        }
    }

    /** What the class says, then what the method says. */
    private static List<String> all(ExtensionContext context, Function<Skiff, String[]> part) {
        return annotations(context).map(part).flatMap(Stream::of).toList();
    }

    private static Stream<Skiff> annotations(ExtensionContext context) {
        return Stream.concat(
                AnnotationSupport.findAnnotation(context.getTestClass(), Skiff.class).stream(),
                AnnotationSupport.findAnnotation(context.getTestMethod(), Skiff.class).stream());
    }
}
