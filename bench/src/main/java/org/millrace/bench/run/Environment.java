package org.millrace.bench.run;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.temporal.ChronoUnit;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import org.millrace.bench.comparator.CompiledLibrary;
import org.millrace.bench.suite.Cores;

/** The machine and the programs of a measurement. */
final class Environment {

    /** Name of the entry that identifies machines with comparable figures. */
    static final String KIND = "machine kind";

    private Environment() {}

    static Map<String, String> describe() {
        Map<String, String> facts = new LinkedHashMap<>();
        facts.put("date",
                ZonedDateTime.now().truncatedTo(ChronoUnit.MINUTES).format(DateTimeFormatter.ISO_OFFSET_DATE_TIME));
        facts.put("processor", processor() + ", " + Runtime.getRuntime().availableProcessors() + " usable");
        facts.put("cores", Cores.ofThisProcess().toString());
        facts.put("hypervisor",
                firstLine("/proc/cpuinfo", "flags").contains(" hypervisor")
                        ? "yes: other guests may share cores and caches"
                        : "none seen");
        facts.put("frequency governor", read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "not visible"));
        facts.put("kernel", System.getProperty("os.name") + " " + System.getProperty("os.version") + " "
                + System.getProperty("os.arch"));
        facts.put("load before", load());
        facts.put("JDK", System.getProperty("java.vm.vendor") + " " + System.getProperty("java.vm.name") + " "
                + System.getProperty("java.vm.version"));
        facts.put("JIT", "C2 alone, compilations waited for (the flags below)");
        facts.put("JVM flags", String.join(" ", ChildProcess.FLAGS));
        String compiler = CompiledLibrary.version();
        facts.put("C", compiler == null ? "no compiler: Java alone is measured"
                : compiler + " " + String.join(" ", CompiledLibrary.FLAGS));
        facts.put(KIND, kind());
        return facts;
    }

    /** Returns the number of runnable threads in the last minute, and in the last five and fifteen. */
    static String load() {
        return read("/proc/loadavg", "?");
    }

    /** Returns whether other programs use the cores on which threads of a benchmark spin. */
    static boolean isBusy() {
        try {
            return Double.parseDouble(load().split(" ")[0]) > Runtime.getRuntime().availableProcessors() / 2.0;
        } catch (NumberFormatException e) {
            return false;
        }
    }

    /** Returns processor, number of cores and generation of the JDK, in a form suitable for a file's name. */
    static String kind() {
        return (processor() + "-" + Runtime.getRuntime().availableProcessors() + "cpu-jdk"
                + Runtime.version().feature()).toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9]+", "-");
    }

    private static String processor() {
        String model = firstLine("/proc/cpuinfo", "model name");
        String family = value(firstLine("/proc/cpuinfo", "cpu family"));
        String number = value(firstLine("/proc/cpuinfo", "model\t"));
        return model.isEmpty() ? System.getProperty("os.arch")
                : value(model) + " (family " + family + " model " + number + ")";
    }

    private static String value(String line) {
        return line.substring(line.indexOf(':') + 1).strip();
    }

    private static String firstLine(String file, String prefix) {
        return read(file, "").lines().filter(line -> line.startsWith(prefix)).findFirst().orElse("");
    }

    private static String read(String file, String otherwise) {
        try {
            return Files.readString(Path.of(file)).strip();
        } catch (IOException e) {
            return otherwise;
        }
    }
}
