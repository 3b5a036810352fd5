package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.AddressLayout;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.millrace.ffi.nccl.nccl_h;
import org.millrace.ffi.plugin.ncclNetProperties_v11_t;
import org.millrace.ffi.plugin.ncclNet_v11_t;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.plugin.host.CapturedLog;
import org.millrace.plugin.host.NativeEnvironment;

/**
 * The plugin in the process of a Java program that loads libnccl. This test takes the role of libnccl: it opens the
 * plugin in this process, and calls the functions in the plugin's table.
 */
@SuppressWarnings("restricted")
class InProcessPluginTest {

    private static final AddressLayout POINTER = ValueLayout.ADDRESS;
    private static final int RTLD_NOW = 2;
    private static MemorySegment table;

    @BeforeAll
    static void openAsNcclDoes() throws Throwable {
        HostProgram.library(); // this call skips the test if the build made no library
        assertTrue(InProcessPlugin.activate());
        assertTrue(InProcessPlugin.activate(), "again");
        assertEquals("1", NativeEnvironment.get("NCCL_NET_PLUGIN_REF_COUNT"));
        Linker linker = Linker.nativeLinker();
        var open = linker.downcallHandle(linker.defaultLookup().find("dlopen").orElseThrow(),
                FunctionDescriptor.of(POINTER, POINTER, ValueLayout.JAVA_INT));
        var find = linker.downcallHandle(linker.defaultLookup().find("dlsym").orElseThrow(),
                FunctionDescriptor.of(POINTER, POINTER, POINTER));
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment library = (MemorySegment) open
                    .invokeExact(arena.allocateFrom(NativeEnvironment.get("NCCL_NET_PLUGIN")), RTLD_NOW);
            MemorySegment symbol = (MemorySegment) find.invokeExact(library, arena.allocateFrom("ncclNetPlugin_v11"));
            table = symbol.reinterpret(ncclNet_v11_t.sizeof());
        }
    }

    private static void succeeds(int result) {
        assertEquals(nccl_h.ncclSuccess(), result, () -> String.join("\n", CapturedLog.lines()));
    }

    @Test
    void theTableThatNcclFindsIsServedByThisJvm() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment pointer = arena.allocate(POINTER);
            MemorySegment logger = MemorySegment.ofAddress(CapturedLog.address());
            MemorySegment handle = arena.allocate(plugin_h.NCCL_NET_HANDLE_MAXSIZE());
            NativeEnvironment.set("NCCL_SOCKET_IFNAME", "lo");
            succeeds(ncclNet_v11_t.init.invoke(ncclNet_v11_t.init(table), pointer, 1, MemorySegment.NULL, logger,
                    MemorySegment.NULL));
            MemorySegment context = pointer.get(POINTER, 0);

            MemorySegment properties = ncclNetProperties_v11_t.allocate(arena);
            succeeds(ncclNet_v11_t.getProperties.invoke(ncclNet_v11_t.getProperties(table), 0, properties));
            assertEquals("lo", ncclNetProperties_v11_t.name(properties).reinterpret(16).getString(0));

            succeeds(ncclNet_v11_t.listen.invoke(ncclNet_v11_t.listen(table), context, 0, handle, pointer));
            MemorySegment listener = pointer.get(POINTER, 0);
            MemorySegment sender = MemorySegment.NULL;
            MemorySegment receiver = MemorySegment.NULL;
            while (sender.address() == 0 || receiver.address() == 0) {
                if (sender.address() == 0) {
                    succeeds(ncclNet_v11_t.connect.invoke(ncclNet_v11_t.connect(table), context, 0, handle, pointer,
                            MemorySegment.NULL));
                    sender = pointer.get(POINTER, 0);
                }
                if (receiver.address() == 0) {
                    succeeds(ncclNet_v11_t.accept.invoke(ncclNet_v11_t.accept(table), listener, pointer,
                            MemorySegment.NULL));
                    receiver = pointer.get(POINTER, 0);
                }
            }
            succeeds(ncclNet_v11_t.closeListen.invoke(ncclNet_v11_t.closeListen(table), listener));
            succeeds(ncclNet_v11_t.closeSend.invoke(ncclNet_v11_t.closeSend(table), sender));
            succeeds(ncclNet_v11_t.closeRecv.invoke(ncclNet_v11_t.closeRecv(table), receiver));
            succeeds(ncclNet_v11_t.finalize.invoke(ncclNet_v11_t.finalize(table), context));
        }
    }

    /**
     * An invalid call of a function in the plugin's table throws an exception in Java. The function then returns an
     * error, and logs a line. If the exception left the upcall, the process would end.
     */
    @Test
    void whateverGoesWrongIsAResultAndALine() {
        CapturedLog.begin();
        int result = ncclNet_v11_t.closeListen.invoke(ncclNet_v11_t.closeListen(table), MemorySegment.ofAddress(0x123));
        assertEquals(nccl_h.ncclInvalidArgument(), result);
        assertEquals("2 NET/Millrace: closeListen: 0x123 is no handle of this plugin, or was closed",
                CapturedLog.lines().getFirst());
    }
}
