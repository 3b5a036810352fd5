package org.millrace.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.ffi.cudart.cudaIpcMemHandle_t;
import org.millrace.ffi.cudart.cudart_h;

/** Device memory of another process of this host: one process exports a ticket, the other opens it. */
public final class SharedDeviceMemory {

    private SharedDeviceMemory() {}

    /**
     * Makes a ticket for memory from {@code cudaMalloc}.
     *
     * @param memory the memory; must stay until every process that opened the ticket has closed it
     * @return 64 bytes for the other process
     */
    public static byte[] export(DeviceMemory memory) {
        CudaRuntime runtime = memory.device().runtime();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment ticket = cudaIpcMemHandle_t.allocate(arena);
            runtime.check(CudaFunction.IPC_GET_MEM_HANDLE, cudart_h.cudaIpcGetMemHandle(ticket,
                    DeviceSegments.pointer("memory to share", memory.segment(), 0)));
            return ticket.toArray(ValueLayout.JAVA_BYTE);
        }
    }

    /**
     * Maps another process's memory. A process cannot open its own ticket.
     *
     * @param device the device that will use it
     * @param ticket what the other process exported
     * @param bytes  how long the memory is there
     * @return the memory; closing it unmaps it
     * @throws CudaException if the ticket is stale, or the devices cannot reach each other
     */
    public static DeviceMemory open(CudaDevice device, byte[] ticket, long bytes) {
        long size = cudaIpcMemHandle_t.layout().byteSize();
        if (ticket.length != size) {
            throw new IllegalArgumentException(
                    "a ticket for device memory has " + size + " bytes, not " + ticket.length);
        }
        CudaRuntime runtime = device.runtime();
        try (CurrentDevice _ = device.makeCurrent(); Arena arena = Arena.ofConfined()) {
            MemorySegment handle = cudaIpcMemHandle_t.allocate(arena);
            MemorySegment.copy(ticket, 0, handle, ValueLayout.JAVA_BYTE, 0, ticket.length);
            MemorySegment address = runtime.addressOf(CudaFunction.IPC_OPEN_MEM_HANDLE,
                    out -> cudart_h.cudaIpcOpenMemHandle(out, handle, cudart_h.cudaIpcMemLazyEnablePeerAccess()));
            return new DeviceMemory(device, address, bytes, start -> runtime
                    .checkRelease(CudaFunction.IPC_CLOSE_MEM_HANDLE, cudart_h.cudaIpcCloseMemHandle(start)));
        }
    }
}
