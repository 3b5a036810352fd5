package org.millrace.cli.doctor;

import org.millrace.cli.console.Host;

/** Main memory, the limit of the control group, and the Java heap, in which no operand lies. */
final class MemoryCheck implements Check {

    @Override
    public String subject() {
        return "memory";
    }

    @Override
    public CheckResult find() {
        StringBuilder summary = new StringBuilder();
        Host.field("/proc/meminfo", "MemTotal")
                .ifPresent(total -> summary.append("total ").append(kibibytes(total)).append(", "));
        Host.field("/proc/meminfo", "MemAvailable")
                .ifPresent(available -> summary.append("available ").append(kibibytes(available)).append(", "));
        Host.line("/sys/fs/cgroup/memory.max")
                .filter(limit -> !limit.equals("max"))
                .ifPresent(limit -> summary.append("cgroup ").append(Bytes.text(Long.parseLong(limit))).append(", "));
        summary.append("Java heap up to ").append(Bytes.text(Runtime.getRuntime().maxMemory()));
        return CheckResult.works(summary.toString());
    }

    /** {@code /proc/meminfo} writes {@code 24684096 kB} and means KiB. */
    private static String kibibytes(String field) {
        return Bytes.text(Long.parseLong(field.split(" ")[0]) * 1024);
    }
}
