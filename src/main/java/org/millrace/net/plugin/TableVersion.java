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

/**
 * The supported versions of NCCL's network table in the order of preference, newest first. The comment of a version
 * states the difference from the next older version.
 */
enum TableVersion {

    /** This version adds the rails and planes of a device. */
    V12(ncclNet_v12_t.layout(), ncclNetProperties_v12_t.layout()),
    /** This version adds a context for each communicator of NCCL. The context is passed to listen and connect. */
    V11(ncclNet_v11_t.layout(), ncclNetProperties_v11_t.layout()),
    /** This version adds a configuration for each connection, and the parents of profiler events. */
    V10(ncclNet_v10_t.layout(), ncclNetProperties_v9_t.layout()),
    /** This version adds 64-bit sizes, and virtual devices. */
    V9(ncclNet_v9_t.layout(), ncclNetProperties_v9_t.layout()),
    /** This version has 32-bit sizes. */
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

    /** Returns the name of the table's symbol in a library. */
    String symbol() {
        return symbol(number());
    }

    static String symbol(int number) {
        return "ncclNetPlugin_v" + number;
    }

    /** Returns whether the table has a context for each communicator of NCCL. */
    boolean hasContext() {
        return number() >= 11;
    }

    boolean hasLongSizes() {
        return number() >= 9;
    }

    /** Returns whether the functions for sends and receives have an argument for the parent of the profiler event. */
    boolean hasProfilerParents() {
        return number() >= 10;
    }
}
