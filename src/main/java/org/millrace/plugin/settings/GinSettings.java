package org.millrace.plugin.settings;

import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;

/**
 * What the user wants of GIN. A value that cannot be used is not taken in silence: GIN is there all the same, as NCCL
 * may need it, and a complaint says so.
 *
 * @param wanted     whether there is GIN at all
 * @param onHost     whether what plays a kernel runs on the CPU, as in tests
 * @param direct     whether memory of peers is mapped; all bytes are staged otherwise
 * @param shared     whether what is staged between ranks of one host lies in memory that they share; it travels over
 *                   the network otherwise
 * @param linger     how long a kernel that makes small copies stays on the GPU after the last of them; zero: there is
 *                   none
 * @param complaints what could not be used, what is allowed, and what is taken instead
 */
public record GinSettings(boolean wanted, boolean onHost, boolean direct, boolean shared, Duration linger,
        List<String> complaints) {

    public static final String CHOICE = "MILLRACE_GIN";
    static final String DIRECT = "MILLRACE_GIN_DIRECT";
    static final String SHARED = "MILLRACE_GIN_SHARED";
    static final String COPY_KERNEL = "MILLRACE_GIN_COPY_KERNEL";

    private static final long LONGEST_LINGER = 1_000_000;
    private static final String HOST = "host";

    /**
     * Reads them.
     *
     * @param environment the value of a variable, or null
     */
    public static GinSettings read(UnaryOperator<String> environment) {
        List<String> complaints = new ArrayList<>();
        String choice = word(environment, CHOICE);
        if (!List.of("", "0", "1", HOST).contains(choice)) {
            complaints.add(complaint(CHOICE, choice,
                    "0 (no GIN), 1 or not set (for GPUs), host (for kernels that are played by the CPU)",
                    "GIN is there, for GPUs"));
        }
        boolean direct = isOn(environment, DIRECT, complaints);
        boolean shared = isOn(environment, SHARED, complaints);
        return new GinSettings(!choice.equals("0"), choice.equals(HOST), direct, shared,
                linger(word(environment, COPY_KERNEL), complaints), List.copyOf(complaints));
    }

    private static String word(UnaryOperator<String> environment, String name) {
        String value = environment.apply(name);
        return value == null ? "" : value.strip();
    }

    private static boolean isOn(UnaryOperator<String> environment, String name, List<String> complaints) {
        String value = word(environment, name);
        if (!List.of("", "0", "1").contains(value)) {
            complaints.add(complaint(name, value, "0 (off), 1 or not set (on)", "it is on"));
        }
        return !value.equals("0");
    }

    private static Duration linger(String value, List<String> complaints) {
        long micros = 0;
        boolean usable = value.isEmpty();
        if (value.matches("-?\\d{1,18}")) {
            long asked = Long.parseLong(value);
            micros = Math.clamp(asked, 0, LONGEST_LINGER);
            usable = asked == micros;
        }
        if (!usable) {
            complaints.add(complaint(COPY_KERNEL, value,
                    "0 to " + LONGEST_LINGER + " microseconds, 0 or not set for no such kernel",
                    micros == 0 ? "there is none" : "it is " + micros));
        }
        return Duration.of(micros, ChronoUnit.MICROS);
    }

    private static String complaint(String name, String value, String allowed, String instead) {
        return name + "=" + value + " cannot be used; allowed: " + allowed + ". Here " + instead;
    }
}
