package dev.kubeskiff.junit;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/** What is said where there is no program. This one needs none. */
@Isolated("it changes a system property")
class ProgramTest {
    @Test
    void aProgramThatIsNotThereIsNamed() {
        String before = System.setProperty("skiff", "/nowhere/skiff");
        try {
            var failure = assertThrows(IllegalStateException.class, Program::find);
            assertTrue(failure.getMessage().contains("/nowhere/skiff"), failure.getMessage());
        } finally {
            if (before == null) {
                System.clearProperty("skiff");
            } else {
                System.setProperty("skiff", before);
            }
        }
    }
}
