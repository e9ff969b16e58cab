package dev.kubeskiff.junit;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * What happens to requests that a test chooses. It does one thing, if it is not a delay alone; the other methods say for which
 * requests, how often, and more of what it does. All of them change this fault and return it.
 *
 * <pre>{@code
 * Fault.error(409).verbs("update").resource("widgets").skip(1).times(2)
 * }</pre>
 */
public final class Fault {
    private final Map<String, Object> match = new LinkedHashMap<>();
    private final Map<String, Object> rest = new LinkedHashMap<>();
    /** What says more of an error, or of the end of a watch; of others it is empty. */
    private final Map<String, Object> effect = new LinkedHashMap<>();

    private Fault() {}

    /** How a watch ends. */
    public enum End {
        /** As at its time-out. */
        CLOSED,
        /** Its connection breaks. */
        CUT,
        /** Nothing more comes, until the fault is removed. */
        STALLED,
        /** With an ERROR event, 410. */
        EXPIRED
    }

    /** What is lost with a connection. */
    public enum Lost {
        /** Nothing is done. */
        REQUEST,
        /** All is done. */
        ANSWER
    }

    /**
     * They are answered with the Status that Kubernetes has for a code.
     *
     * @param code 401, 403, 404, 409, 410, 429, 500, 503 or 504
     * @return the fault
     */
    public static Fault error(int code) {
        return new Fault().withEffect("error", "code", code);
    }

    /**
     * They wait.
     *
     * @param time how long
     * @return the fault
     */
    public static Fault delay(Duration time) {
        return new Fault().delayed(time);
    }

    /**
     * Watches end, those too that are open.
     *
     * @param end how
     * @return the fault
     */
    public static Fault watch(End end) {
        return new Fault().withEffect("watch", "end", lower(end));
    }

    /**
     * Lists and watches at {@code resourceVersion=0} begin with an old state.
     *
     * @param changes how many changes ago
     * @return the fault
     */
    public static Fault stale(int changes) {
        return new Fault().with("stale", changes);
    }

    /**
     * The connection is cut in place of an answer.
     *
     * @param lost what is lost
     * @return the fault
     */
    public static Fault lose(Lost lost) {
        return new Fault().with("lose", lower(lost));
    }

    /**
     * The object is written before the request: an update of what the client has read conflicts.
     *
     * @return the fault
     */
    public static Fault conflict() {
        return new Fault().with("conflict", true);
    }

    /**
     * It is for these verbs.
     *
     * @param verbs as Kubernetes calls them
     * @return the fault
     */
    public Fault verbs(String... verbs) {
        return matching("verbs", List.of(verbs));
    }

    /**
     * It is for an API group.
     *
     * @param group its name; empty for that of the core
     * @return the fault
     */
    public Fault group(String group) {
        return matching("group", group);
    }

    /**
     * It is for a resource.
     *
     * @param plural its plural name
     * @return the fault
     */
    public Fault resource(String plural) {
        return matching("resource", plural);
    }

    /**
     * It is for a subresource.
     *
     * @param subresource its name; empty for the object itself
     * @return the fault
     */
    public Fault subresource(String subresource) {
        return matching("subresource", subresource);
    }

    /**
     * It is for a namespace.
     *
     * @param namespace its name
     * @return the fault
     */
    public Fault namespace(String namespace) {
        return matching("namespace", namespace);
    }

    /**
     * It is for an object.
     *
     * @param name its name
     * @return the fault
     */
    public Fault name(String name) {
        return matching("name", name);
    }

    /**
     * It is for a user.
     *
     * @param user their name
     * @return the fault
     */
    public Fault user(String user) {
        return matching("user", user);
    }

    /**
     * It is for a path: this alone is for those that are not resources.
     *
     * @param path the path, or what paths begin with before a {@code *}
     * @return the fault
     */
    public Fault path(String path) {
        return matching("path", path);
    }

    /**
     * Some requests that fit go by first.
     *
     * @param count how many
     * @return the fault
     */
    public Fault skip(int count) {
        return with("skip", count);
    }

    /**
     * Some requests meet it, and no more.
     *
     * @param count how many
     * @return the fault
     */
    public Fault times(int count) {
        return with("times", count);
    }

    /**
     * Chance says which of them meet it.
     *
     * @param share how likely each does, from 0 to 1
     * @param seed the same one gives the same chances
     * @return the fault
     */
    public Fault probability(double share, int seed) {
        return with("probability", share).with("seed", seed);
    }

    /**
     * They wait, before anything else.
     *
     * @param time how long
     * @return the fault
     */
    public Fault delayed(Duration time) {
        return with("delay", go(time));
    }

    /**
     * The reason of an error whose code has several.
     *
     * @param reason AlreadyExists, Gone, ServerTimeout
     * @return the fault
     */
    public Fault reason(String reason) {
        return more("reason", reason);
    }

    /**
     * The message of an error, in place of Kubernetes' words.
     *
     * @param message the text
     * @return the fault
     */
    public Fault message(String message) {
        return more("message", message);
    }

    /**
     * When the client may try again that gets the error.
     *
     * @param seconds after how many seconds
     * @return the fault
     */
    public Fault retryAfterSeconds(int seconds) {
        return more("retryAfterSeconds", seconds);
    }

    /**
     * The watch ends after some objects.
     *
     * @param count after how many
     * @return the fault
     */
    public Fault afterEvents(int count) {
        return more("afterEvents", count);
    }

    /**
     * The watch ends in time.
     *
     * @param time after how long
     * @return the fault
     */
    public Fault after(Duration time) {
        return more("after", go(time));
    }

    /** The fault as it is sent. */
    Map<String, Object> body() {
        Map<String, Object> body = new LinkedHashMap<>(rest);
        body.put("match", match);
        return body;
    }

    private Fault matching(String name, Object value) {
        match.put(name, value);
        return this;
    }

    private Fault with(String name, Object value) {
        rest.put(name, value);
        return this;
    }

    private Fault withEffect(String name, String first, Object value) {
        effect.put(first, value);
        return with(name, effect);
    }

    /** What fits no other fault is refused by the server. */
    private Fault more(String name, Object value) {
        if (effect.isEmpty()) {
            return with(name, value);
        }
        effect.put(name, value);
        return this;
    }

    private static String lower(Enum<?> name) {
        return name.name().toLowerCase(Locale.ROOT);
    }

    /** As Go writes it. */
    private static String go(Duration time) {
        return time.toNanos() + "ns";
    }
}
