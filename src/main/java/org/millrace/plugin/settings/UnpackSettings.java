package org.millrace.plugin.settings;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.UnaryOperator;
import org.millrace.config.ConfigurationException;

/**
 * Whether kernels gather what arrives from a bounce buffer themselves (NCCL's network device UNPACK), and what NCCL
 * must do for it.
 *
 * @param wanted      whether they do
 * @param onHost      whether what plays a kernel runs on the CPU
 * @param bounceBytes length of the process' bounce buffer
 */
public record UnpackSettings(boolean wanted, boolean onHost, long bounceBytes) {

    public static final String CHOICE = "MILLRACE_UNPACK";
    public static final String SIZE = "MILLRACE_UNPACK_MIB";

    private static final long USUAL_MIB = 256;
    /** Offsets in the buffer have 32 bits. */
    private static final long MOST_MIB = 4096;
    private static final String SHARED_BUFFERS = "NCCL_NET_SHARED_BUFFERS";
    private static final String P2P_LL = "NCCL_P2P_LL_THRESHOLD";

    /**
     * What is set unless the user has set it: kernels of PAT do not unpack, and those of trees have room for two peers
     * where a tree may have three.
     */
    private static final Map<String, String> TO_SET =
            Map.of("NCCL_PAT_ENABLE", "0", "NCCL_ALGO", "Ring", SHARED_BUFFERS, "0");

    /**
     * Reads them.
     *
     * @param environment the value of a variable, or null
     * @throws ConfigurationException if a value is not possible
     */
    public static UnpackSettings read(UnaryOperator<String> environment) {
        String choice = environment.apply(CHOICE);
        boolean onHost = "host".equals(choice);
        boolean off = choice == null || choice.isEmpty() || "0".equals(choice);
        if (!off && !onHost && !"1".equals(choice)) {
            throw new ConfigurationException(CHOICE + "=" + choice
                    + " is not known; allowed: 1 (the GPU's kernels unpack), 0 or not set (they do not),"
                    + " or host (for kernels that are played by the CPU)");
        }
        String size = environment.apply(SIZE) == null ? "" : environment.apply(SIZE).strip();
        long mib = size.isEmpty() ? USUAL_MIB : size.matches("\\d{1,9}") ? Long.parseLong(size) : 0;
        if (mib < 1 || mib > MOST_MIB) {
            throw new ConfigurationException(SIZE + "=" + size + " is not possible; allowed: 1 to " + MOST_MIB
                    + " MiB of bounce buffer, or not set (here: " + USUAL_MIB + ")");
        }
        return new UnpackSettings(!off, onHost, mib << 20);
    }

    /**
     * What has to be set for NCCL.
     *
     * @throws ConfigurationException if the user has set what makes it impossible
     */
    Map<String, String> toSet(UnaryOperator<String> environment) {
        Map<String, String> set = new LinkedHashMap<>();
        if (!wanted) {
            return set;
        }
        require(environment, SHARED_BUFFERS, NcclInteger.parse(environment.apply(SHARED_BUFFERS), 0) == 0,
                "a slice's pages are those of its connection's own slots; set it to 0");
        // An empty send is LL then, always: the kernel counts Simple slices, and an empty step does not say what it is.
        require(environment, P2P_LL, NcclInteger.parse(environment.apply(P2P_LL), 0) >= 0,
                "a send of nothing must be told from a Simple slice; set it to 0 or more");
        TO_SET.forEach((name, value) -> {
            String present = environment.apply(name);
            if (present == null || present.isEmpty()) {
                set.put(name, value);
            }
        });
        return set;
    }

    private static void require(UnaryOperator<String> environment, String name, boolean possible, String because) {
        if (!possible) {
            throw new ConfigurationException(CHOICE + "=1 is not possible with " + name + "=" + environment.apply(name)
                    + ": " + because + ", or unset one of the two");
        }
    }
}
