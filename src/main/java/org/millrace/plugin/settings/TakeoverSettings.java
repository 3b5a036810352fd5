package org.millrace.plugin.settings;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.BiConsumer;
import java.util.function.UnaryOperator;
import org.millrace.config.ConfigurationException;
import org.millrace.plugin.log.NcclLog;

/**
 * Whether connections can be taken over under the user's settings, and what has to be set for it.
 *
 * <p>
 * NCCL caches each variable when it first reads it. In NCCL 2.28.9 and 2.30.7 those below that need setting are first
 * read behind {@code ncclNetInit} of the first communicator, which is where the plugin's init is called: PXN_DISABLE
 * when the topology's paths are computed, NET_SHARED_BUFFERS when a connection is set up. GDRCOPY_ENABLE is read
 * before; but its default is what is needed.
 *
 * @param takeover whether connections are taken over
 * @param toSet    variables that must be set for it, and to what
 * @param refusal  why they are not although the user did not forbid it: a sentence; null if they are, or the user did
 */
public record TakeoverSettings(boolean takeover, Map<String, String> toSet, String refusal) {

    public static final String TAKEOVER = "MILLRACE_TAKEOVER";

    /**
     * A variable that the takeover depends on.
     *
     * @param name     the variable
     * @param required the value it must have
     * @param absent   the value it has if it is not set
     * @param because  what another value does
     */
    private record Requirement(String name, long required, long absent, String because) {
    }

    private static final List<Requirement> REQUIREMENTS = List.of(
            new Requirement("NCCL_NET_SHARED_BUFFERS", 0, 1,
                    "with shared buffers NCCL does not tell a plugin where the counters of send and receive lie"),
            new Requirement("NCCL_PXN_DISABLE", 1, 0,
                    "data that passes through another GPU of the node is always moved by NCCL's proxy"),
            new Requirement("NCCL_GDRCOPY_ENABLE", 0, 0, "with GDRCopy the counters lie in the GPU's memory"),
            new Requirement("NCCL_ALLOC_P2P_NET_LL_BUFFERS", 0, 0, "it moves the LL buffer away from the counters"));

    /**
     * Rings that NCCL makes unless the user says how many. Two, which it would choose by the speed of a network card,
     * are what one core can copy; the data of more rings is moved by more threads. The same on every rank, whatever its
     * machine: ranks that differ would wait for each other's rings.
     */
    private static final String CHANNELS = "8";
    private static final List<String> CHANNEL_BOUNDS =
            List.of("NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_MIN_NRINGS", "NCCL_MAX_NRINGS");

    /**
     * Decides.
     *
     * @param environment the value of a variable, or null
     * @throws ConfigurationException if MILLRACE_TAKEOVER is not 0 or 1, or is 1 and another setting makes it
     *                                impossible; the same for MILLRACE_UNPACK
     */
    public static TakeoverSettings decide(UnaryOperator<String> environment) {
        TakeoverSettings settings = decideTakeover(environment);
        Map<String, String> all = new LinkedHashMap<>(settings.toSet);
        all.putAll(UnpackSettings.read(environment).toSet(environment));
        return new TakeoverSettings(settings.takeover, Map.copyOf(all), settings.refusal);
    }

    private static TakeoverSettings decideTakeover(UnaryOperator<String> environment) {
        String wish = environment.apply(TAKEOVER);
        boolean insists = "1".equals(wish);
        if ("0".equals(wish)) {
            return new TakeoverSettings(false, Map.of(), null);
        }
        if (wish != null && !wish.isEmpty() && !insists) {
            throw new ConfigurationException(TAKEOVER + "=" + wish
                    + " is not known; allowed: 1 (take over or fail), 0 (leave NCCL's proxy in charge),"
                    + " or not set (take over where it is possible)");
        }
        Map<String, String> toSet = new LinkedHashMap<>();
        List<String> conflicts = new ArrayList<>();
        for (Requirement each : REQUIREMENTS) {
            String value = environment.apply(each.name);
            if (NcclInteger.parse(value, each.absent) == each.required) {
                continue;
            }
            if (value == null || value.isEmpty()) {
                toSet.put(each.name, Long.toString(each.required));
            } else {
                conflicts.add(each.name + "=" + value + " (" + each.because + "; unset it, or set it to "
                        + each.required + ")");
            }
        }
        if (CHANNEL_BOUNDS.stream().map(environment).allMatch(Objects::isNull)) {
            toSet.put(CHANNEL_BOUNDS.getFirst(), CHANNELS);
        }
        if (conflicts.isEmpty()) {
            return new TakeoverSettings(true, Map.copyOf(toSet), null);
        }
        String why = "the takeover is not possible with " + String.join(" and ", conflicts);
        if (insists) {
            throw new ConfigurationException(why + ", and " + TAKEOVER + "=1 insists on it");
        }
        return new TakeoverSettings(false, Map.of(),
                why + ". NCCL's proxy stays in charge; " + TAKEOVER + "=0 says so without this warning");
    }

    /** Sets what has to be set, for NCCL to read later. */
    public void apply(BiConsumer<String, String> environment) {
        toSet.forEach((name, value) -> {
            environment.accept(name, value);
            NcclLog.info("set " + name + "=" + value);
        });
    }
}
