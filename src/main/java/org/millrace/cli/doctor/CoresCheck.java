package org.millrace.cli.doctor;

import org.millrace.cli.console.Host;

/** Processor cores, and what limits them: the affinity mask of this process, and the quota of its control group. */
final class CoresCheck implements Check {

    @Override
    public String subject() {
        return "cores";
    }

    @Override
    public CheckResult find() {
        int usable = Runtime.getRuntime().availableProcessors();
        StringBuilder summary = new StringBuilder(usable + " usable");
        Host.line("/sys/devices/system/cpu/online").ifPresent(online -> summary.append(", online ").append(online));
        Host.field("/proc/self/status", "Cpus_allowed_list")
                .ifPresent(allowed -> summary.append(", affinity ").append(allowed));
        Host.line("/sys/fs/cgroup/cpu.max")
                .filter(quota -> !quota.startsWith("max"))
                .ifPresent(quota -> summary.append(", cgroup ").append(quota).append(" us"));
        Host.field("/proc/cpuinfo", "model name").ifPresent(model -> summary.append(", ").append(model));
        return usable > 1 ? CheckResult.works(summary.toString())
                : CheckResult.works(summary.toString(),
                        "on one core ranks take turns: times will be those of the scheduler. Grant more (taskset, docker --cpus).");
    }
}
