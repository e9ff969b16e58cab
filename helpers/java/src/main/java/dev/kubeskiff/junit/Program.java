package dev.kubeskiff.junit;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Optional;

/** Where the program {@code skiff} is. */
final class Program {
    private static final String NAME = File.separatorChar == '\\' ? "skiff.exe" : "skiff";

    private Program() {
    }

    /**
     * The program that the system property {@code skiff} or the variable {@code SKIFF} names, else the one on the {@code PATH}.
     *
     * @throws IllegalStateException if there is none
     */
    static Path find() {
        String named = Optional.ofNullable(System.getProperty("skiff")).orElse(System.getenv("SKIFF"));
        String name = named == null || named.isEmpty() ? NAME : named;
        if (name.contains(File.separator)) {
            return Optional.of(Path.of(name)).filter(Files::isExecutable).orElseThrow(() -> missing(name));
        }
        String path = Optional.ofNullable(System.getenv("PATH")).orElse("");
        return Arrays.stream(path.split(File.pathSeparator))
                .map(folder -> Path.of(folder, name))
                .filter(Files::isExecutable)
                .findFirst()
                .orElseThrow(() -> missing(name));
    }

    private static IllegalStateException missing(String name) {
        return new IllegalStateException("there is no program " + name + "; SKIFF may name one");
    }
}
