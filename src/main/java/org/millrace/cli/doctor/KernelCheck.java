package org.millrace.cli.doctor;

import org.millrace.cli.Host;

/** The operating system. */
final class KernelCheck implements Check {

    @Override
    public String subject() {
        return "kernel";
    }

    @Override
    public Finding find() {
        String kernel = Host.kernel();
        return System.getProperty("os.name").equals("Linux") ? Finding.works(kernel)
                : Finding.works(kernel,
                        "NCCL, shared memory and the looks of this machine below need Linux; the emulated device does not");
    }
}
