package org.millrace.net.plugin;

import java.lang.foreign.GroupLayout;
import org.millrace.ffi.plugin.ncclNetProperties_v11_t;
import org.millrace.ffi.plugin.ncclNetProperties_v12_t;
import org.millrace.ffi.plugin.ncclNetProperties_v8_t;
import org.millrace.ffi.plugin.ncclNetProperties_v9_t;
import org.millrace.ffi.plugin.ncclNet_v10_t;
import org.millrace.ffi.plugin.ncclNet_v11_t;
import org.millrace.ffi.plugin.ncclNet_v12_t;
import org.millrace.ffi.plugin.ncclNet_v8_t;
import org.millrace.ffi.plugin.ncclNet_v9_t;

/** The versions of NCCL's network table that are understood here, the best first, and in what they differ. */
enum TableVersion {

    /** Rails and planes of a device. */
    V12(ncclNet_v12_t.layout(), ncclNetProperties_v12_t.layout()),
    /** A context of each communicator, which goes with listen and connect. */
    V11(ncclNet_v11_t.layout(), ncclNetProperties_v11_t.layout()),
    /** A configuration of each connection, and parents for profiler events. */
    V10(ncclNet_v10_t.layout(), ncclNetProperties_v9_t.layout()),
    /** 64-bit sizes, virtual devices. */
    V9(ncclNet_v9_t.layout(), ncclNetProperties_v9_t.layout()),
    /** Sizes of 32 bits. */
    V8(ncclNet_v8_t.layout(), ncclNetProperties_v8_t.layout());

    private final GroupLayout table;
    private final GroupLayout properties;

    TableVersion(GroupLayout table, GroupLayout properties) {
        this.table = table;
        this.properties = properties;
    }

    GroupLayout table() {
        return table;
    }

    GroupLayout properties() {
        return properties;
    }

    int number() {
        return Integer.parseInt(name().substring(1));
    }

    /** The symbol of a plugin's table. */
    String symbol() {
        return symbol(number());
    }

    static String symbol(int number) {
        return "ncclNetPlugin_v" + number;
    }

    /** Whether a communicator has a context of its own. */
    boolean hasContext() {
        return number() >= 11;
    }

    /** Whether sizes are {@code size_t}. */
    boolean hasLongSizes() {
        return number() >= 9;
    }

    /** Whether sends and receives name the parents of profiler events. */
    boolean hasProfilerParents() {
        return number() >= 10;
    }
}
