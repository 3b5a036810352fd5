package org.millrace.plugin;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.FifoLayout;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings.Kernels;
import org.millrace.config.Settings;
import org.millrace.cuda.CudaDriver;

/**
 * What moves the data of NCCL's network connections under the user's settings, and what has to be set for it.
 *
 * <p>
 * NCCL caches each variable when it first reads it. In NCCL 2.28.9 and 2.30.7 those below that need setting are first
 * read behind {@code ncclNetInit} of the first communicator, which is where the plugin's init is called: PXN_DISABLE
 * when the topology's paths are computed, NET_SHARED_BUFFERS when a connection is set up. GDRCOPY_ENABLE is read
 * before; but its default is what is needed.
 *
 * @param nccl            the NCCL that calls
 * @param takeover        whether connections are taken over
 * @param threads         the threads that then serve them
 * @param unpack          which kernels gather what arrives from a bounce buffer themselves (NCCL's network device
 *                        UNPACK)
 * @param bounceBytes     length of the process's bounce buffer
 * @param toSet           variables that must be set for all this, and to what
 * @param refusal         why connections are not taken over although the user did not forbid it: a sentence; null if
 *                        they are, or the user did
 * @param loss            what happens when a connection that was taken over is lost
 * @param deviceSlots     whether slots may be in the memory of GPUs
 * @param choosesChannels whether the user leaves the number of channels to the plugin
 * @param maxRecvs        the most buffers of one receive, where connections are not taken over
 */
public record PluginConfiguration(CallingNccl nccl, boolean takeover, ProxyThreads threads, Kernels unpack,
        long bounceBytes, Map<String, String> toSet, @Nullable String refusal, LossPolicy loss, boolean deviceSlots,
        boolean choosesChannels, int maxRecvs) {

    /**
     * A variable that the takeover depends on.
     *
     * @param absent  the value it has if it is not set
     * @param because what another value does
     */
    private record Requirement(String name, long required, long absent, String because) {
    }

    private static final String SHARED_BUFFERS = "NCCL_NET_SHARED_BUFFERS";
    private static final String P2P_LL = "NCCL_P2P_LL_THRESHOLD";
    private static final List<Requirement> REQUIREMENTS = List.of(
            new Requirement(SHARED_BUFFERS, 0, 1,
                    "with shared buffers NCCL does not tell a plugin where the counters of send and receive lie"),
            new Requirement("NCCL_PXN_DISABLE", 1, 0,
                    "data that passes through another GPU of the node is always moved by NCCL's proxy"),
            new Requirement("NCCL_GDRCOPY_ENABLE", 0, 0, "with GDRCopy the counters lie in the GPU's memory"));

    /** What slots in the memory of GPUs need besides. */
    private static final List<Requirement> DEVICE_REQUIREMENTS = List.of(
            new Requirement("NCCL_ALLOC_P2P_NET_LL_BUFFERS", 1, 0,
                    "without it the receiving side's LL buffer is in the GPU's memory too, where no processor can store"
                            + " its lines"),
            new Requirement("NCCL_LOCAL_REGISTER", 0, 1, "NCCL then has the network read the program's own buffers"),
            new Requirement("NCCL_GRAPH_REGISTER", 0, 1, "NCCL then has the network read the program's own buffers"),
            new Requirement("NCCL_COLLNET_ENABLE", 0, 0, "processors add what CollNet reduces, in the host's memory"));

    /**
     * What is set for slots in the memory of GPUs unless the user has set it. They lie there however far the card is,
     * since none is used; and a copy of 512 KiB takes a GPU not much longer than one of 128 KiB.
     */
    private static final Map<String, String> FOR_DEVICE_SLOTS =
            Map.of("NCCL_NET_GDR_LEVEL", "SYS", "NCCL_NET_GDR_READ", "1", "NCCL_P2P_NET_CHUNKSIZE", "524288");

    /**
     * Rings that NCCL makes unless the user says how many. Two, which it would choose by the speed of a network card,
     * are what one core can copy; the data of more rings is moved by more threads, where there is much of it: see
     * TunerPlugin. The same on every rank, whatever its machine: ranks that differ would wait for each other's rings.
     */
    private static final String CHANNELS = "8";
    private static final List<String> CHANNEL_BOUNDS =
            List.of("NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_MIN_NRINGS", "NCCL_MAX_NRINGS");

    /**
     * Connections that sends and receives of one peer use, unless the user says how many: NCCL 2.28 uses two and 2.30
     * one, which one core copies. (Two H200s, send and receive of 128 MiB with 1, 2 and 4: over shared memory 6.7, 3.7
     * and 2.6 ms, over TCP 42.7, 25.4 and 15.5; with two cores a rank 57, 67 and 59; small sizes the same.) The same on
     * every rank, as the number of rings is. With many peers NCCL's one is enough, and four times as many connections
     * are memory.
     */
    private static final String PEER_CHANNELS = "NCCL_NCHANNELS_PER_NET_PEER";
    private static final String CHANNELS_PER_PEER = "4";
    private static final int MOST_RANKS = 16;

    /**
     * Half of what NCCL takes for a connection's slots: those of all channels together stay nearer to the cores that
     * copy them. (Two H200s, 128 MiB of all-reduce with 8 and 16 cores a rank: 10 and 6.0 ms, not 15 and 7.2; with one
     * and two some tenth less.) The same on every rank, as the number of rings is.
     */
    private static final String BUFFER = "NCCL_BUFFSIZE";
    private static final String BUFFER_BYTES = Integer.toString(2 << 20);

    /**
     * What is set for kernels that unpack unless the user has set it: kernels of PAT do not unpack, and those of trees
     * have room for two peers where a tree may have three.
     */
    private static final Map<String, String> FOR_UNPACK =
            Map.of("NCCL_PAT_ENABLE", "0", "NCCL_ALGO", "Ring", SHARED_BUFFERS, "0");

    /**
     * Reads the settings and decides.
     *
     * @param nccl     the NCCL that calls: where it is not known how it lays memory out, its own proxy moves the data
     * @param settings as the user has them
     * @throws ConfigurationException if a value is not usable, or if MILLRACE_TAKEOVER=1 or MILLRACE_UNPACK=1 is not
     *                                possible with another setting
     */
    static PluginConfiguration of(CallingNccl nccl, Configuration settings) {
        Map<String, String> toSet = new LinkedHashMap<>();
        Optional<Boolean> wish = settings.get(Settings.TAKEOVER);
        Kernels unpack = kernelsThatUnpack(settings);
        if (nccl.obstacle() != null && unpack != Kernels.NONE) {
            throw new ConfigurationException(
                    settings.unpackingText() + " is not possible with " + nccl + nccl.obstacle());
        }
        String conflict = !wish.orElse(true) ? null
                : nccl.obstacle() != null ? "the takeover is not possible with " + nccl + nccl.obstacle()
                        : prepareTakeover(settings, toSet);
        if (conflict != null && wish.isPresent()) {
            throw new ConfigurationException(conflict + ", and " + Settings.TAKEOVER.name() + "=1 insists on it");
        }
        boolean takeover = wish.orElse(true) && conflict == null;
        boolean deviceSlots = takeover && prepareDeviceSlots(settings, toSet);
        if (takeover && !deviceSlots && settings.variable(BUFFER).isEmpty()) {
            toSet.put(BUFFER, BUFFER_BYTES);
        }
        long bounceBytes = (long) settings.get(Settings.UNPACK_MIB) << 20;
        if (unpack != Kernels.NONE) {
            prepareUnpack(settings, toSet);
        }
        return new PluginConfiguration(nccl, takeover, ProxyThreads.decide(settings, deviceSlots, 1), unpack,
                bounceBytes, Map.copyOf(toSet),
                conflict == null ? null
                        : conflict + ". NCCL's proxy stays in charge; " + Settings.TAKEOVER.name()
                                + "=0 says so without this warning",
                LossPolicy.of(settings), deviceSlots, choosesChannels(settings), maxRecvs(settings, unpack));
    }

    /**
     * What an NCCL that is not known yet would get, for people.
     *
     * @throws ConfigurationException as when it calls
     */
    public static String describe(Configuration settings) {
        PluginConfiguration plugin = of(CallingNccl.UNTOLD, settings);
        return plugin.threads + ", with slots in " + (plugin.deviceSlots ? "the GPU's memory" : "the host's memory")
                + ", and takes connections of NCCL up to " + FifoLayout.NEWEST_KNOWN
                + " over, by the version that it says; a newer one is left to its own proxy";
    }

    /**
     * One unless the user says more, as NCCL's own Socket network has it. A kernel that unpacks counts the slices of
     * its connection in their order, which those of several tags have not.
     */
    private static int maxRecvs(Configuration settings, Kernels unpack) {
        return unpack != Kernels.NONE ? 1 : settings.ifSet(Settings.NET_MAX_RECVS).orElse(1);
    }

    /** Whether slots may be in the memory of GPUs; adds what has to be set for it. */
    private static boolean prepareDeviceSlots(Configuration settings, Map<String, String> toSet) {
        Optional<Boolean> wish = settings.get(Settings.DEVICE_SLOTS);
        if (!wish.orElse(areWorthIt(settings))) {
            return false;
        }
        Map<String, String> required = new LinkedHashMap<>();
        List<String> conflicts = conflicts(DEVICE_REQUIREMENTS, settings, required);
        String protocols = settings.text(Settings.PROTOCOLS);
        if (protocols.toUpperCase(Locale.ROOT).contains("LL128") && !protocols.startsWith("^")) {
            conflicts.add("NCCL_PROTO=" + protocols + " (a GPU's copies do not store LL128's lines in order)");
        }
        if (kernelsThatUnpack(settings) != Kernels.NONE) {
            conflicts.add(
                    settings.unpackingText() + " (kernels then gather what they receive from a buffer of their own)");
        }
        if (!conflicts.isEmpty()) {
            String what = "slots in the GPU's memory are not possible with " + String.join(" and ", conflicts);
            if (wish.isPresent()) {
                throw new ConfigurationException(what + ", and " + Settings.DEVICE_SLOTS.name() + "=1 insists on them");
            }
            NcclLog.info(what + ": they are in the host's");
            return false;
        }
        FOR_DEVICE_SLOTS.forEach((name, value) -> {
            if (settings.variable(name).isEmpty()) {
                required.put(name, value);
            }
        });
        toSet.putAll(required);
        return true;
    }

    /**
     * Whether a GPU copies from GPU to GPU: between processes of one host, over shared memory. Over TCP what it stages
     * in the host's memory takes longer than slots there do (2 MiB of an all-reduce 511 and 243 us, 128 MiB 11.7 and
     * 8.7 ms). All ranks must find the same.
     */
    private static boolean areWorthIt(Configuration settings) {
        String network = settings.text(Settings.NETWORK);
        return (network.isEmpty() || network.equals("auto") || network.equals("shm"))
                && CoreShare.isWholeJobHere(settings::variable) && CudaDriver.isPresent();
    }

    /** The settings that contradict requirements; what has to be set for the others is added to the map. */
    private static List<String> conflicts(List<Requirement> requirements, Configuration settings,
            Map<String, String> required) {
        List<String> conflicts = new ArrayList<>();
        for (Requirement each : requirements) {
            if (settings.ncclNumber(each.name, each.absent) == each.required) {
                continue;
            }
            String value = settings.variable(each.name);
            if (value.isEmpty()) {
                required.put(each.name, Long.toString(each.required));
            } else {
                conflicts.add(each.name + "=" + value + " (" + each.because + "; unset it, or set it to "
                        + each.required + ")");
            }
        }
        return conflicts;
    }

    /** Adds what has to be set; returns why it is of no use, null if it is. */
    private static @Nullable String prepareTakeover(Configuration settings, Map<String, String> toSet) {
        Map<String, String> required = new LinkedHashMap<>();
        List<String> conflicts = conflicts(REQUIREMENTS, settings, required);
        if (!conflicts.isEmpty()) {
            return "the takeover is not possible with " + String.join(" and ", conflicts);
        }
        if (choosesChannels(settings)) {
            required.put(CHANNEL_BOUNDS.getFirst(), CHANNELS);
            if (settings.variable(PEER_CHANNELS).isEmpty() && CoreShare.ranksOfJob(settings::variable) <= MOST_RANKS) {
                required.put(PEER_CHANNELS, CHANNELS_PER_PEER);
            }
        }
        toSet.putAll(required);
        return null;
    }

    /** A process that this one comes from may have left what was set for it. */
    private static boolean choosesChannels(Configuration settings) {
        return CHANNEL_BOUNDS.stream().map(settings::variable).allMatch(String::isEmpty)
                || CHANNELS.equals(settings.variable(CHANNEL_BOUNDS.getFirst()));
    }

    private static Kernels kernelsThatUnpack(Configuration settings) {
        if (settings.get(Settings.NET_DEVICE_UNPACK_THRESHOLD) != 0) {
            throw new ConfigurationException(Settings.NET_DEVICE_UNPACK_THRESHOLD.name() + "="
                    + settings.text(Settings.NET_DEVICE_UNPACK_THRESHOLD)
                    + " is not usable; allowed: 0, as a kernel of NCCL gathers all Simple slices of a connection or"
                    + " none (NCCL_PROTO says what is Simple)");
        }
        return settings.unpackingKernels();
    }

    private static void prepareUnpack(Configuration settings, Map<String, String> toSet) {
        if (settings.ncclNumber(SHARED_BUFFERS, 0) != 0) {
            throw unpackRefused(settings, SHARED_BUFFERS,
                    "a slice's pages are those of its connection's own slots; set it to 0");
        }
        // An empty send is LL then, always: the kernel counts Simple slices, and an empty step does not say what it is.
        if (settings.ncclNumber(P2P_LL, 0) < 0) {
            throw unpackRefused(settings, P2P_LL,
                    "a send of nothing must be told from a Simple slice; set it to 0 or more");
        }
        FOR_UNPACK.forEach((name, value) -> {
            if (settings.variable(name).isEmpty()) {
                toSet.put(name, value);
            }
        });
    }

    private static ConfigurationException unpackRefused(Configuration settings, String name, String because) {
        return new ConfigurationException(settings.unpackingText() + " is not possible with " + name + "="
                + settings.variable(name) + ": " + because + ", or unset one of the two");
    }

    /**
     * What the user wants to happen when a peer is lost.
     *
     * @param ends        whether the process ends
     * @param grace       how long the program has to abort or destroy the communicator before
     * @param asyncErrors whether {@code ncclCommGetAsyncError} tells of it
     */
    record LossPolicy(boolean ends, Duration grace, boolean asyncErrors) {

        public static LossPolicy of(Configuration settings) {
            return new LossPolicy(settings.get(Settings.ON_LOSS), settings.get(Settings.LOSS_GRACE),
                    settings.get(Settings.ASYNC_ERROR));
        }
    }
}
