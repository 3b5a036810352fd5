package org.millrace.plugin;

import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.millrace.plugin.gin.GinPlugin;
import org.millrace.plugin.host.CallingLibrary;
import org.millrace.plugin.host.CallingLibrary.Vendor;
import org.millrace.plugin.host.NativeEnvironment;
import org.millrace.plugin.host.NativeMemory;
import org.millrace.plugin.loss.LossWatch;
import org.millrace.plugin.path.DataPath;
import org.millrace.plugin.path.TunerChoices;

/** The objects that implement NCCL's tables. The shim's calls arrive here, and are passed to these objects. */
record PluginTables(NetPlugin net, TunerPlugin tuner, GinPlugin gin, ProfilerPlugin profiler,
        CollNetPlugin collNet) implements Upcalls.Target {

    static PluginTables create(Function<PluginConfiguration, DataPath> paths) {
        LossWatch losses = new LossWatch();
        NetPlugin net = new NetPlugin(paths, losses);
        return new PluginTables(net, new TunerPlugin(library -> choices(net.sessionIfAny(library)), losses),
                new GinPlugin(NativeEnvironment::get, losses, net::takesDeviceMemory),
                new ProfilerPlugin(NativeEnvironment::get, net::operationComing),
                new CollNetPlugin(library -> net.session(library).endpoint(), NativeEnvironment::get));
    }

    private static @Nullable TunerChoices choices(NetPlugin.@Nullable Session session) {
        return session == null ? null : new TunerChoices(session.path(), session.choosesChannels());
    }

    void callAsShim(Upcalls.Function function, long... arguments) {
        try (Arena arena = Arena.ofConfined()) {
            call(function, arena.allocateFrom(ValueLayout.JAVA_LONG, arguments).address());
        }
    }

    /**
     * {@inheritDoc} Each table has its own method below. If the shim often calls the functions of one table, the JIT
     * compiler compiles only the method of this table.
     */
    @Override
    public void call(Upcalls.Function function, long a) {
        if (function instanceof Upcalls.Net of) {
            callNet(of, a);
        } else if (function instanceof Upcalls.Tuner of) {
            callTuner(of, a);
        } else if (function instanceof Upcalls.Gin of) {
            callGin(of, a);
        } else if (function instanceof Upcalls.Rma of) {
            callRma(of, a);
        } else if (function instanceof Upcalls.Profiler of) {
            callProfiler(of, a);
        } else if (function instanceof Upcalls.CollNet of) {
            callCollNet(of, a);
        }
    }

    /** Returns an argument that is a pointer or a 64-bit number. */
    private static long word(long arguments, int index) {
        return NativeMemory.getLong(arguments + (long) index * Long.BYTES);
    }

    private static int number(long arguments, int index) {
        return (int) word(arguments, index);
    }

    /** {@return the C string at an address; null for a null pointer} */
    private static @Nullable String text(long address) {
        return address == 0 ? null : NativeMemory.at(address, Integer.MAX_VALUE).getString(0);
    }

    private void callNet(Upcalls.Net function, long a) {
        switch (function) {
            case INIT -> net.init(number(a, 0), word(a, 1), word(a, 2), word(a, 3), number(a, 4), word(a, 5),
                    new CallingLibrary(Vendor.values()[number(a, 6)], number(a, 7), text(word(a, 8))));
            case DEVICES -> net.devices(word(a, 0));
            case GET_PROPERTIES -> net.getProperties(number(a, 0), number(a, 1), word(a, 2), word(a, 3));
            case LISTEN -> net.listen(word(a, 0), number(a, 1), word(a, 2), word(a, 3), word(a, 4));
            case CONNECT ->
                net.connect(word(a, 0), number(a, 1), word(a, 2), word(a, 3), word(a, 4), number(a, 5), word(a, 6));
            case ACCEPT -> net.accept(word(a, 0), word(a, 1), word(a, 2), number(a, 3));
            case REG_MR -> net.regMr(word(a, 0), word(a, 1), word(a, 2), number(a, 3), word(a, 4));
            case DEREG_MR -> net.deregMr(word(a, 0), word(a, 1));
            case ISEND -> net.isend(word(a, 0), word(a, 1), word(a, 2), number(a, 3), word(a, 4), word(a, 5));
            case IRECV ->
                net.irecv(word(a, 0), number(a, 1), word(a, 2), word(a, 3), word(a, 4), word(a, 5), word(a, 6));
            case TEST -> net.test(word(a, 0), word(a, 1), word(a, 2));
            case CLOSE_SEND -> net.closeSend(word(a, 0));
            case CLOSE_RECV -> net.closeRecv(word(a, 0));
            case CLOSE_LISTEN -> net.closeListen(word(a, 0));
            case FINALIZE -> net.finalize(word(a, 0));
        }
    }

    private void callTuner(Upcalls.Tuner function, long a) {
        if (function == Upcalls.Tuner.TUNER_INIT) {
            net.bootstrapped(word(a, 1));
        }
        switch (function) {
            case TUNER_INIT -> tuner.tunerInit(word(a, 0), word(a, 1), word(a, 2), word(a, 3), word(a, 4));
            case TUNER_GET_COLL_INFO ->
                tuner.tunerGetCollInfo(word(a, 0), word(a, 2), word(a, 4), number(a, 5), number(a, 6), word(a, 8));
            case TUNER_FINALIZE -> tuner.tunerFinalize(word(a, 0));
        }
    }

    private void callGin(Upcalls.Gin function, long a) {
        switch (function) {
            case GIN_INIT -> gin.ginInit(word(a, 0), word(a, 1), word(a, 2), number(a, 3));
            case GIN_DEVICES -> gin.ginDevices(word(a, 0));
            case GIN_GET_PROPERTIES -> gin.ginGetProperties(number(a, 0), number(a, 1), word(a, 2));
            case GIN_LISTEN -> gin.ginListen(word(a, 0), number(a, 1), word(a, 2), word(a, 3));
            case GIN_CONNECT -> gin.ginConnect(word(a, 0), word(a, 1), number(a, 2), number(a, 3), number(a, 4),
                    word(a, 5), word(a, 6));
            case GIN_CREATE_CONTEXT -> gin.ginCreateContext(number(a, 0), word(a, 1), number(a, 2), number(a, 3),
                    number(a, 4), number(a, 5), number(a, 6), word(a, 7), word(a, 8));
            case GIN_REG_MR_SYM ->
                gin.ginRegMrSym(word(a, 0), word(a, 1), word(a, 2), number(a, 3), word(a, 4), word(a, 5), word(a, 6));
            case GIN_DEREG_MR_SYM -> gin.ginDeregMrSym(word(a, 0), word(a, 1));
            case GIN_DESTROY_CONTEXT -> gin.ginDestroyContext(word(a, 0));
            case GIN_CLOSE_COLL -> gin.ginCloseColl(word(a, 0));
            case GIN_CLOSE_LISTEN -> gin.ginCloseListen(word(a, 0));
            case GIN_FINALIZE -> gin.ginFinalize(word(a, 0));
        }
    }

    private void callRma(Upcalls.Rma function, long a) {
        switch (function) {
            case RMA_CREATE_CONTEXT -> gin.rmaCreateContext(word(a, 0), number(a, 1), word(a, 2));
            case RMA_PUT -> gin.rmaPut(word(a, 0), number(a, 1), word(a, 2), word(a, 3), word(a, 4), word(a, 5),
                    word(a, 6), number(a, 7), word(a, 8));
            case RMA_PUT_SIGNAL ->
                gin.rmaPutSignal(word(a, 0), number(a, 1), word(a, 2), word(a, 3), word(a, 4), word(a, 5), word(a, 6),
                        number(a, 7), word(a, 8), word(a, 9), word(a, 10), number(a, 11), word(a, 12));
            case RMA_GET -> gin.rmaGet(word(a, 0), number(a, 1), word(a, 2), word(a, 3), word(a, 4), word(a, 5),
                    word(a, 6), number(a, 7), word(a, 8));
            case RMA_FLUSH -> gin.rmaFlush(word(a, 0), number(a, 1), number(a, 2), word(a, 3));
            case RMA_TEST -> gin.rmaTest(word(a, 0), word(a, 1), word(a, 2));
        }
    }

    private void callProfiler(Upcalls.Profiler function, long a) {
        if (function == Upcalls.Profiler.PROFILER_INIT) {
            net.bootstrapped(word(a, 2));
        }
        switch (function) {
            case PROFILER_INIT ->
                profiler.profilerInit(word(a, 0), word(a, 1), word(a, 2), number(a, 3), number(a, 4), number(a, 5));
            case PROFILER_FINALIZE -> profiler.profilerFinalize(word(a, 0), word(a, 1));
            case PROFILER_PAUSE_ENDED -> profiler.profilerPauseEnded(word(a, 0));
        }
    }

    private void callCollNet(Upcalls.CollNet function, long a) {
        switch (function) {
            case COLL_NET_LISTEN -> collNet.collNetListen(word(a, 0), number(a, 1), word(a, 2), word(a, 3));
            case COLL_NET_CONNECT ->
                collNet.collNetConnect(word(a, 0), number(a, 1), number(a, 2), word(a, 3), word(a, 4));
            case COLL_NET_REDUCE_SUPPORT -> collNet.collNetReduceSupport(number(a, 0), number(a, 1), word(a, 2));
            case COLL_NET_REG_MR -> collNet.collNetRegMr(word(a, 0), word(a, 1), word(a, 2), number(a, 3), word(a, 4));
            case COLL_NET_DEREG_MR -> collNet.collNetDeregMr(word(a, 0), word(a, 1));
            case COLL_NET_ALL_REDUCE -> collNet.collNetAllReduce(word(a, 0), word(a, 1), word(a, 2), word(a, 3),
                    number(a, 4), number(a, 5), word(a, 6), word(a, 7), word(a, 8));
            case COLL_NET_ALL_GATHER -> collNet.collNetAllGather(word(a, 0), word(a, 1), word(a, 2), word(a, 3),
                    word(a, 4), word(a, 5), word(a, 6), word(a, 7), word(a, 8));
            case COLL_NET_REDUCE_SCATTER -> collNet.collNetReduceScatter(word(a, 0), word(a, 1), word(a, 2), word(a, 3),
                    word(a, 4), word(a, 5), number(a, 6), number(a, 7), word(a, 8), word(a, 9), word(a, 10));
            case COLL_NET_TEST -> collNet.collNetTest(word(a, 0), word(a, 1), word(a, 2));
            case COLL_NET_CLOSE_COLL -> collNet.collNetCloseColl(word(a, 0));
            case COLL_NET_CLOSE_LISTEN -> collNet.collNetCloseListen(word(a, 0));
        }
    }
}
