package org.millrace.cli.doctor;

import org.millrace.cli.console.Host;

/** The operating system. */
final class KernelCheck implements Check {

    @Override
    public String subject() {
        return "kernel";
    }

    @Override
    public CheckResult find() {
        String kernel = Host.kernel();
        return System.getProperty("os.name").equals("Linux") ? CheckResult.works(kernel)
                : CheckResult.works(kernel,
                        "NCCL, shared memory and the looks of this machine below need Linux; the emulated device does not");
    }
}
