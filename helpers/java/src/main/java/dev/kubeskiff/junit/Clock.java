package dev.kubeskiff.junit;

import java.time.Duration;
import java.time.Instant;
import java.util.Map;

/** What time it is for one control plane: for creation times, tokens, events and leases. Nobody has to sleep. */
public final class Clock {
    private static final String PATH = "/skiff/v1/clock";

    private final ControlPlane plane;

    Clock(ControlPlane plane) {
        this.plane = plane;
    }

    /**
     * The time that it shows.
     *
     * @return an instant
     */
    public Instant now() {
        return Instant.parse((String) plane.ask("GET", PATH, null).get("time"));
    }

    /**
     * Has it show a time, and go on from there.
     *
     * @param time the time
     */
    public void set(Instant time) {
        put(Map.of("time", time.toString()));
    }

    /**
     * Moves it on, or back.
     *
     * @param by how far
     */
    public void advance(Duration by) {
        put(Map.of("advance", by.toNanos() + "ns"));
    }

    /** Has it stand still, until {@link #run}. */
    public void freeze() {
        put(Map.of("frozen", true));
    }

    /** Has it go on from what it shows. */
    public void run() {
        put(Map.of("frozen", false));
    }

    /** Makes it that of the machine. */
    public void reset() {
        put(Map.of());
    }

    private void put(Map<String, Object> fields) {
        plane.ask("PUT", PATH, fields);
    }
}
