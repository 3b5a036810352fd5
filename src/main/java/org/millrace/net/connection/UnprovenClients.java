package org.millrace.net.connection;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Clients of a listener of whom it is not known yet who they are. Where there are too many, one goes of the address
 * from which most came, and not one that has shown already that it knows the listener's secret: so neither a flood from
 * one address keeps out who comes from another, nor one of clients without the secret who has it. Used by one thread at
 * a time.
 */
public final class UnprovenClients<C> {

    private final int most;
    private final Predicate<C> knowsSecret;
    /** With the address that each came from, oldest first. */
    private final Map<C, Object> sources = new LinkedHashMap<>();
    private final Map<Object, Integer> bySource = new HashMap<>();

    /** @param knowsSecret whether a client has shown that, though not yet who it is */
    public UnprovenClients(int most, Predicate<C> knowsSecret) {
        this.most = most;
        this.knowsSecret = knowsSecret;
    }

    public void add(C client, Object source) {
        sources.put(client, source);
        bySource.merge(source, 1, Integer::sum);
    }

    /** Does nothing if it is not here. */
    public void remove(C client) {
        Object source = sources.remove(client);
        if (source != null) {
            bySource.computeIfPresent(source, (same, count) -> count == 1 ? null : count - 1);
        }
    }

    /** Oldest first, as they are now. */
    public List<C> all() {
        return List.copyOf(sources.keySet());
    }

    public boolean isEmpty() {
        return sources.isEmpty();
    }

    /** Removes one if there are too many; null otherwise. */
    public @Nullable C removeExcess() {
        return sources.size() > most ? removeOne() : null;
    }

    /** Removes the one to go first; null if there is none. */
    public @Nullable C removeOne() {
        int crowd = bySource.values().stream().mapToInt(Integer::intValue).max().orElse(0);
        C chosen = null;
        boolean spared = true;
        for (Map.Entry<C, Object> each : sources.entrySet()) {
            boolean knows = knowsSecret.test(each.getKey());
            if (chosen == null || spared && !knows) {
                chosen = each.getKey();
                spared = knows;
            }
            if (!knows && bySource.get(each.getValue()) == crowd) {
                chosen = each.getKey();
                break;
            }
        }
        if (chosen != null) {
            remove(chosen);
        }
        return chosen;
    }
}
