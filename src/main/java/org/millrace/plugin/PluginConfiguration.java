package org.millrace.plugin;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.KernelLayout;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings;
import org.millrace.config.Settings.Kernels;
import org.millrace.config.Settings.PayloadCheck;
import org.millrace.cuda.driver.CudaDriver;
import org.millrace.plugin.host.Ainic;
import org.millrace.plugin.host.CallingLibrary;
import org.millrace.plugin.host.CallingLibrary.Vendor;
import org.millrace.plugin.host.CoreShare;
import org.millrace.plugin.host.NcclLog;
import org.millrace.plugin.host.ProxyThreads;
import org.millrace.plugin.loss.LossPolicy;

/**
 * Data path for NCCL's network connections, chosen from the user's settings, with the environment variables that the
 * path requires.
 *
 * <p>
 * The plugin sets the required variables in its init, which {@code ncclNetInit} of the first communicator calls. NCCL
 * caches each variable when NCCL first reads it, so the plugin's init must precede this read. In NCCL 2.28.9 and
 * 2.30.7, the init precedes the first read of every required variable except GDRCOPY_ENABLE. For instance, NCCL reads
 * PXN_DISABLE when it computes the topology's paths, and NET_SHARED_BUFFERS when it sets up a connection. {@code
 * ncclInit} reads GDRCOPY_ENABLE before the plugin's init. The required value of GDRCOPY_ENABLE is NCCL's default, so
 * the early read does no harm.
 *
 * @param nccl            the calling NCCL
 * @param takeover        whether connections are taken over
 * @param threads         threads that serve the connections after a takeover
 * @param unpack          kind of the kernels that gather received data from a bounce buffer themselves (NCCL's network
 *                        device UNPACK), if any
 * @param bounceBytes     length of the process's bounce buffer
 * @param toSet           required variables and their values
 * @param refusal         sentence with the reason why connections are not taken over; null if they are taken over, or
 *                        if the user forbade the takeover
 * @param loss            reaction to the loss of a connection that was taken over
 * @param deviceSlots     whether slots may be in GPU memory
 * @param choosesChannels whether the user leaves the number of channels to the plugin
 * @param maxRecvs        maximum number of buffers of one receive, if connections are not taken over
 * @param check           check of the payloads
 */
public record PluginConfiguration(CallingLibrary nccl, boolean takeover, ProxyThreads threads, Kernels unpack,
        long bounceBytes, Map<String, String> toSet, @Nullable String refusal, LossPolicy loss, boolean deviceSlots,
        boolean choosesChannels, int maxRecvs, PayloadCheck check) {

    /**
     * A variable that the takeover depends on.
     *
     * @param absent  value that NCCL uses if the variable is not set
     * @param because effect of another value
     */
    private record Requirement(String name, long required, long absent, String because) {
    }

    private static final String SHARED_BUFFERS = "NCCL_NET_SHARED_BUFFERS";
    private static final String P2P_LL = "NCCL_P2P_LL_THRESHOLD";
    private static final List<Requirement> REQUIREMENTS = List.of(
            new Requirement(SHARED_BUFFERS, 0, 1,
                    "with shared buffers NCCL does not report to a plugin where the counters of send and receive lie"),
            new Requirement("NCCL_PXN_DISABLE", 1, 0,
                    "data that passes through another GPU of the node is always moved by NCCL's proxy"),
            new Requirement("NCCL_GDRCOPY_ENABLE", 0, 0, "with GDRCopy the counters lie in the GPU's memory"));

    /** Further requirements under RCCL. */
    private static final List<Requirement> RCCL_REQUIREMENTS =
            List.of(new Requirement("RCCL_MSCCL_ENABLE", 0, 1, "an algorithm of MSCCL can use protocol LL128"));
    private static final String PROTOCOLS = Settings.PROTOCOLS.name();
    /** RCCL's variable that has priority over {@link #PROTOCOLS}. */
    private static final String PROTOCOL_OVERRIDE = "RCCL_OVERRIDE_PROTO";
    /**
     * Values of {@link #PROTOCOLS} that forbid LL128 for all functions. Values with separate lists for single functions
     * do not match.
     */
    private static final Pattern LL128_FORBIDDEN = Pattern
            .compile("(LL|SIMPLE)(,(LL|SIMPLE))*|\\^(LL,|SIMPLE,)*LL128(,LL|,SIMPLE)*", Pattern.CASE_INSENSITIVE);
    /**
     * Clause for messages: the reason why RCCL's connections are not taken over if the user does not set
     * MILLRACE_TAKEOVER.
     */
    private static final String NOT_TRIED =
            ": it was not tried on an AMD GPU, so " + Settings.TAKEOVER.name() + "=1 is required";

    /** Further requirements of slots in GPU memory. */
    private static final List<Requirement> DEVICE_REQUIREMENTS = List.of(
            new Requirement("NCCL_ALLOC_P2P_NET_LL_BUFFERS", 1, 0,
                    "without it the receiving side's LL buffer is in the GPU's memory too, where no processor can store"
                            + " its lines"),
            new Requirement("NCCL_LOCAL_REGISTER", 0, 1, "NCCL then has the network read the program's own buffers"),
            new Requirement("NCCL_GRAPH_REGISTER", 0, 1, "NCCL then has the network read the program's own buffers"),
            new Requirement("NCCL_COLLNET_ENABLE", 0, 0, "processors add what CollNet reduces, in the host's memory"));

    /**
     * Variables for slots in GPU memory. The plugin sets those that the user has not set. The variables allow slots in
     * GPU memory at any distance between GPU and network card, because no card is used. Chunks have 512 KiB, because a
     * GPU needs little more time to copy 512 KiB than 128 KiB.
     */
    private static final Map<String, String> FOR_DEVICE_SLOTS =
            Map.of("NCCL_NET_GDR_LEVEL", "SYS", "NCCL_NET_GDR_READ", "1", "NCCL_P2P_NET_CHUNKSIZE", "524288");

    /**
     * Number of channels that NCCL creates, equal to the number of rings. The user's setting has priority. Without a
     * setting NCCL would choose two channels, because it derives the number from the speed of a network card. One core
     * can copy the data of two rings. With more rings, more threads can move the data of large operations, see {@code
     * TunerChoices}. The number is equal on all ranks, because ranks with different numbers would wait for missing
     * rings.
     */
    private static final String CHANNELS = "8";
    private static final List<String> CHANNEL_BOUNDS =
            List.of("NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_MIN_NRINGS", "NCCL_MAX_NRINGS");

    /**
     * Variable with the number of connections for sends and receives between two ranks. NCCL 2.28 uses two connections,
     * and 2.30 uses one connection. With one connection, one core copies all the data. The user's setting has priority.
     * The number is equal on all ranks, like the number of rings. With more than {@link #MAX_RANKS} ranks NCCL's
     * default remains, because more connections would need much memory.
     *
     * <p>
     * Measured on two H200s: send and receive of 128 MiB with 1, 2 and 4 connections. Over shared memory the transfer
     * took 6.7, 3.7 and 2.6 ms, and over TCP 42.7, 25.4 and 15.5 ms. With two cores for each rank, the transfer over
     * TCP took 57, 67 and 59 ms. The time of small transfers does not depend on the number of connections.
     */
    private static final String PEER_CHANNELS = "NCCL_NCHANNELS_PER_NET_PEER";
    private static final String CHANNELS_PER_PEER = "4";
    private static final int MAX_RANKS = 16;

    /**
     * Variable that lets NCCL select LL128 between a GPU and a network behind the GPU's own processor, such as Grace.
     * NCCL's own proxy receives directly into slots, where kernels poll the flag of each line. No network stores these
     * lines in order. The user's setting has priority.
     */
    private static final String LL128_BEHIND_PROCESSOR = "NCCL_LL128_C2C";

    /**
     * Variable with the size of a connection's buffer. The plugin sets half of NCCL's default. The slots of all
     * channels together are then more likely to stay in the caches of the cores that copy them. The size is equal on
     * all ranks, like the number of rings.
     *
     * <p>
     * Measured on two H200s: with 8 cores for each rank, an all-reduce of 128 MiB took 10 ms, and 15 ms with NCCL's
     * default. With 16 cores, it took 6.0 ms, and 7.2 ms with NCCL's default. With one and two cores, it took about a
     * tenth less time than with NCCL's default.
     */
    private static final String BUFFER = "NCCL_BUFFSIZE";
    private static final String BUFFER_BYTES = Integer.toString(2 << 20);

    /**
     * Variables for kernels that unpack. The plugin sets those that the user has not set. Kernels of the algorithm PAT
     * do not unpack. The algorithm tree is excluded, too: its kernels can unpack from two peers, but a rank of a tree
     * may receive from three.
     */
    private static final Map<String, String> FOR_UNPACK =
            Map.of("NCCL_PAT_ENABLE", "0", "NCCL_ALGO", "Ring", SHARED_BUFFERS, "0");

    /**
     * Reads the settings and decides.
     *
     * @param nccl     the calling NCCL. If its memory layout is unknown, NCCL's proxy moves the data
     * @param settings the user's settings
     * @throws ConfigurationException if a value is not usable, or if the calling NCCL or another setting contradicts
     *                                MILLRACE_TAKEOVER=1, MILLRACE_UNPACK=1 or MILLRACE_DEVICE_SLOTS=1
     */
    static PluginConfiguration of(CallingLibrary nccl, Configuration settings) {
        Map<String, String> toSet = new LinkedHashMap<>();
        Optional<Boolean> wish = settings.get(Settings.TAKEOVER);
        Kernels unpack = kernelsThatUnpack(settings);
        String unpackObstacle = nccl.isRccl() ? ": its kernels do not gather received data" : nccl.obstacle();
        if (unpackObstacle != null && unpack != Kernels.NONE) {
            throw new ConfigurationException(
                    settings.unpackingText() + " is not possible with " + nccl + unpackObstacle);
        }
        String obstacle = obstacle(nccl, settings);
        String conflict = !wish.orElse(true) ? null
                : obstacle != null ? "the takeover is not possible with " + nccl + obstacle
                        : prepareTakeover(nccl, settings, toSet);
        if (conflict != null && wish.isPresent()) {
            throw new ConfigurationException(conflict + ", and " + Settings.TAKEOVER.name() + "=1 requires it");
        }
        boolean takeover = wish.orElse(true) && conflict == null;
        String noTakeover = takeover ? null
                : conflict != null ? conflict : Settings.TAKEOVER.name() + "=" + settings.text(Settings.TAKEOVER);
        boolean deviceSlots = prepareDeviceSlots(nccl, settings, toSet, noTakeover);
        if (takeover && !deviceSlots && settings.variable(BUFFER).isEmpty()) {
            toSet.put(BUFFER, BUFFER_BYTES);
        }
        boolean isNccl = nccl.vendor() == Vendor.NCCL || nccl.vendor() == Vendor.NCCLX;
        if (!takeover && isNccl && settings.variable(LL128_BEHIND_PROCESSOR).isEmpty()) {
            toSet.put(LL128_BEHIND_PROCESSOR, "0");
        }
        long bounceBytes = (long) settings.get(Settings.UNPACK_MIB) << 20;
        if (unpack != Kernels.NONE) {
            prepareUnpack(settings, toSet);
        }
        return new PluginConfiguration(nccl, takeover, ProxyThreads.decide(settings, deviceSlots, 1), unpack,
                bounceBytes, Map.copyOf(toSet),
                conflict == null ? null
                        : conflict + ". NCCL's proxy serves the connections; " + Settings.TAKEOVER.name()
                                + "=0 selects it without this warning",
                LossPolicy.of(settings), deviceSlots, choosesChannels(settings), maxRecvs(settings, unpack),
                settings.get(Settings.CHECK));
    }

    /**
     * Returns a clause for messages: the reason why a library's connections are not taken over; null if they can be
     * taken over.
     */
    private static @Nullable String obstacle(CallingLibrary nccl, Configuration settings) {
        if (nccl.isRccl() && Ainic.mayBeUsed(settings.variable(Ainic.VARIABLE))) {
            return ", because it passes no address for a device handle if it uses AINIC cards (" + Ainic.VARIABLE
                    + "=0 keeps it from using them)";
        }
        boolean tried = !nccl.isRccl() || settings.get(Settings.TAKEOVER).isPresent();
        return nccl.obstacle() == null && !tried ? NOT_TRIED : nccl.obstacle();
    }

    /**
     * Returns the configuration for an unknown NCCL, as a text for people.
     *
     * @throws ConfigurationException under the same conditions as {@link #of}
     */
    public static String describe(Configuration settings) {
        PluginConfiguration plugin = of(CallingLibrary.UNTOLD, settings);
        return plugin.threads + ", with slots in " + (plugin.deviceSlots ? "the GPU's memory" : "the host's memory")
                + ", and takes connections of NCCL up to " + KernelLayout.NEWEST_KNOWN
                + " over, by the version that it reports; a newer one is left to its own proxy; RCCL 2.27.7 to 2.30 with "
                + Settings.TAKEOVER.name() + "=1";
    }

    /**
     * Returns the maximum number of buffers of one receive. The number is the user's setting, or 1 without a setting,
     * as in NCCL's own Socket network. The number is always 1 for kernels that unpack. Such a kernel numbers the slices
     * of its connection in sequence, and slices with different tags have no common sequence.
     */
    private static int maxRecvs(Configuration settings, Kernels unpack) {
        return unpack != Kernels.NONE ? 1 : settings.ifSet(Settings.NET_MAX_RECVS).orElse(1);
    }

    /**
     * Returns whether slots may be in GPU memory. If so, adds the required variables to {@code toSet}.
     *
     * @param noTakeover reason why connections are not taken over; null if they are taken over
     */
    private static boolean prepareDeviceSlots(CallingLibrary nccl, Configuration settings, Map<String, String> toSet,
            @Nullable String noTakeover) {
        Optional<Boolean> wish = settings.get(Settings.DEVICE_SLOTS);
        if (!wish.orElse(noTakeover == null && !nccl.isRccl() && areWorthIt(settings))) {
            return false;
        }
        Map<String, String> required = new LinkedHashMap<>();
        List<String> conflicts = conflicts(DEVICE_REQUIREMENTS, settings, required);
        if (nccl.isRccl()) {
            conflicts.add(nccl + " (the plugin copies with CUDA, which an AMD GPU does not have)");
        } else if (noTakeover != null) {
            conflicts.add("NCCL's own proxy (" + noTakeover + ")");
        }
        String protocols = settings.text(Settings.PROTOCOLS);
        if (protocols.toUpperCase(Locale.ROOT).contains("LL128") && !protocols.startsWith("^")) {
            conflicts.add("NCCL_PROTO=" + protocols + " (a GPU's copies do not store LL128's lines in order)");
        }
        if (kernelsThatUnpack(settings) != Kernels.NONE) {
            conflicts.add(
                    settings.unpackingText() + " (kernels then gather what they receive from a buffer of their own)");
        }
        if (settings.get(Settings.CHECK) != PayloadCheck.OFF) {
            conflicts.add(
                    Settings.CHECK.name() + "=" + settings.text(Settings.CHECK) + " (the processor reads the slots)");
        }
        if (!conflicts.isEmpty()) {
            String what = "slots in the GPU's memory are not possible with " + String.join(" and ", conflicts);
            if (wish.isPresent()) {
                throw new ConfigurationException(what + ", and " + Settings.DEVICE_SLOTS.name() + "=1 requires them");
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
     * Returns whether slots in GPU memory are faster than slots in host memory. They are faster if a GPU copies from
     * GPU to GPU, between processes of one host that use shared memory. Over TCP the data of GPU slots is staged in
     * host memory, which takes longer. Measured over TCP: an all-reduce of 2 MiB took 511 us with GPU slots and 243 us
     * with host slots. An all-reduce of 128 MiB took 11.7 ms with GPU slots and 8.7 ms with host slots. All ranks must
     * get the same result.
     */
    private static boolean areWorthIt(Configuration settings) {
        String network = settings.text(Settings.NETWORK);
        return (network.isEmpty() || network.equals("auto") || network.equals("shm"))
                && CoreShare.isWholeJobHere(settings::variable) && CudaDriver.isPresent();
    }

    /**
     * Returns the settings that contradict requirements. For each requirement on a variable that is not set, adds the
     * variable to {@code required}.
     */
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

    /**
     * Adds to {@code toSet} the variables that a takeover requires, and returns null. If a takeover is impossible,
     * returns the reason.
     */
    private static @Nullable String prepareTakeover(CallingLibrary nccl, Configuration settings,
            Map<String, String> toSet) {
        Map<String, String> required = new LinkedHashMap<>();
        List<String> conflicts = conflicts(REQUIREMENTS, settings, required);
        if (nccl.isRccl()) {
            conflicts.addAll(conflicts(RCCL_REQUIREMENTS, settings, required));
            forbidLL128(settings, required, conflicts);
        }
        if (!conflicts.isEmpty()) {
            return "the takeover is not possible with " + String.join(" and ", conflicts);
        }
        if (choosesChannels(settings)) {
            required.put(CHANNEL_BOUNDS.getFirst(), CHANNELS);
            if (settings.variable(PEER_CHANNELS).isEmpty() && CoreShare.ranksOfJob(settings::variable) <= MAX_RANKS) {
                required.put(PEER_CHANNELS, CHANNELS_PER_PEER);
            }
        }
        toSet.putAll(required);
        return null;
    }

    /**
     * Forbids the use of protocol LL128 by RCCL. If the user has not set {@link #PROTOCOLS}, adds that variable to
     * {@code required}. Adds the user's settings that allow LL128 to {@code conflicts}. A kernel of RCCL may store tail
     * before all lines of an LL128 step are visible. In memory that step then looks like a Simple step. RCCL's own
     * proxy knows the protocol and waits for the flags.
     */
    private static void forbidLL128(Configuration settings, Map<String, String> required, List<String> conflicts) {
        String protocols = settings.variable(PROTOCOLS);
        if (protocols.isEmpty()) {
            required.put(PROTOCOLS, "^LL128");
        } else if (!LL128_FORBIDDEN.matcher(protocols).matches()) {
            conflicts.add(PROTOCOLS + "=" + protocols + " (an LL128 step of RCCL can look like a Simple step in memory;"
                    + " unset it, or set it to ^LL128)");
        }
        String override = settings.variable(PROTOCOL_OVERRIDE);
        if (override.toUpperCase(Locale.ROOT).contains("LL128")) {
            conflicts.add(PROTOCOL_OVERRIDE + "=" + override
                    + " (an LL128 step of RCCL can look like a Simple step in memory; unset it)");
        }
    }

    /**
     * Returns whether the plugin chooses the number of channels; false if the user has set it. A variable with the
     * plugin's value does not count as set by the user, because the plugin may have set it in a parent process.
     */
    private static boolean choosesChannels(Configuration settings) {
        return CHANNEL_BOUNDS.stream().map(settings::variable).allMatch(String::isEmpty)
                || CHANNELS.equals(settings.variable(CHANNEL_BOUNDS.getFirst()));
    }

    private static Kernels kernelsThatUnpack(Configuration settings) {
        if (settings.get(Settings.NET_DEVICE_UNPACK_THRESHOLD) != 0) {
            throw new ConfigurationException(Settings.NET_DEVICE_UNPACK_THRESHOLD.name() + "="
                    + settings.text(Settings.NET_DEVICE_UNPACK_THRESHOLD)
                    + " is not usable; allowed: 0, as a kernel of NCCL gathers all Simple slices of a connection or"
                    + " none (NCCL_PROTO selects Simple)");
        }
        return settings.unpackingKernels();
    }

    private static void prepareUnpack(Configuration settings, Map<String, String> toSet) {
        if (settings.ncclNumber(SHARED_BUFFERS, 0) != 0) {
            throw unpackRefused(settings, SHARED_BUFFERS,
                    "a slice's pages are those of its connection's own slots; set it to 0");
        }
        // The kernel counts only slices of the protocol Simple, and the memory does not show the protocol of an empty
        // step. If NCCL_P2P_LL_THRESHOLD is 0 or more, an empty send always uses LL, so its protocol is known. A
        // negative value is therefore refused.
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

}
