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

/** Supported versions of NCCL's network table, the best first, and their differences. */
enum TableVersion {

    /** Adds rails and planes of a device. */
    V12(ncclNet_v12_t.layout(), ncclNetProperties_v12_t.layout()),
    /** Adds a context of each communicator, which listen and connect take. */
    V11(ncclNet_v11_t.layout(), ncclNetProperties_v11_t.layout()),
    /** Adds a configuration of each connection, and parents for profiler events. */
    V10(ncclNet_v10_t.layout(), ncclNetProperties_v9_t.layout()),
    /** Adds 64-bit sizes and virtual devices. */
    V9(ncclNet_v9_t.layout(), ncclNetProperties_v9_t.layout()),
    /** Has sizes of 32 bits. */
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

    /** Returns the symbol of a plugin's table. */
    String symbol() {
        return symbol(number());
    }

    static String symbol(int number) {
        return "ncclNetPlugin_v" + number;
    }

    /** Returns whether each communicator has its own context. */
    boolean hasContext() {
        return number() >= 11;
    }

    /** Returns whether sizes are {@code size_t}. */
    boolean hasLongSizes() {
        return number() >= 9;
    }

    /** Returns whether sends and receives name the parents of profiler events. */
    boolean hasProfilerParents() {
        return number() >= 10;
    }
}
