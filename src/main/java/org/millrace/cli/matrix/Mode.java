package org.millrace.cli.matrix;

import java.util.Map;

/** Where data lies while it travels, as {@link org.millrace.Route#mode} has it. */
enum Mode {
    /** In a connection's own slots. */
    NORMAL,
    /** In slots that connections share. */
    OFFSET,
    /** In the operands, registered or not. */
    PTR;

    Map<String, String> settings() {
        return Map.of("NCCL_NET_SHARED_BUFFERS", this == OFFSET ? "1" : "0", "MILLRACE_PTR_THRESHOLD",
                this == PTR ? "0" : "1024G");
    }
}
