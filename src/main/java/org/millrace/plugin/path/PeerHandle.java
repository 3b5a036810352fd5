package org.millrace.plugin.path;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.net.ConnectionKey;
import org.millrace.net.Listener;
import org.millrace.plugin.host.NativeMemory;

/**
 * Handle that listen returns to NCCL. NCCL passes the handle to the peer's connect.
 *
 * <pre>
 *   0        4        5         6       8           16          24          92         96         128
 *  +--------+--------+---------+-------+-----------+-----------+-----------+----------+----------+
 *  | magic  | version|  path   |   0   | key, high | key, low  | address   | number   |    0     |
 *  +--------+--------+---------+-------+-----------+-----------+-----------+----------+----------+
 * </pre>
 *
 * @param path number of the listening side's {@link DataPath}; the connecting side must have the same data path
 */
public record PeerHandle(byte path, ConnectionKey key, byte[] address) {

    private static final int MAGIC = 0x4d694c72;
    private static final byte VERSION = 2;

    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;
    private static final long VERSION_OFFSET = 4;
    private static final long PATH_OFFSET = 5;
    private static final long KEY_HIGH_OFFSET = 8;
    private static final long KEY_LOW_OFFSET = 16;
    private static final long ADDRESS_OFFSET = 24;

    /** Offset of a number. The function table that wrote the number determines its meaning, see {@link #number}. */
    private static final long NUMBER_OFFSET = ADDRESS_OFFSET + Listener.ADDRESS_BYTES;

    public static void putNumber(long handle, int number) {
        NativeMemory.at(handle, plugin_h.NCCL_NET_HANDLE_MAXSIZE()).set(INT, NUMBER_OFFSET, number);
    }

    /** {@return the number that a table added to a handle; 0 if no table added one} */
    public static int number(long handle) {
        return NativeMemory.at(handle, plugin_h.NCCL_NET_HANDLE_MAXSIZE()).get(INT, NUMBER_OFFSET);
    }

    public void write(long handle) {
        MemorySegment bytes = NativeMemory.at(handle, plugin_h.NCCL_NET_HANDLE_MAXSIZE()).fill((byte) 0);
        bytes.set(INT, 0, MAGIC);
        bytes.set(ValueLayout.JAVA_BYTE, VERSION_OFFSET, VERSION);
        bytes.set(ValueLayout.JAVA_BYTE, PATH_OFFSET, path);
        bytes.set(LONG, KEY_HIGH_OFFSET, key.high());
        bytes.set(LONG, KEY_LOW_OFFSET, key.low());
        MemorySegment.copy(address, 0, bytes, ValueLayout.JAVA_BYTE, ADDRESS_OFFSET, Listener.ADDRESS_BYTES);
    }

    /** Reads a peer's handle. Throws {@link IllegalArgumentException} if another plugin or another version wrote it. */
    public static PeerHandle read(long handle) {
        MemorySegment bytes = NativeMemory.at(handle, plugin_h.NCCL_NET_HANDLE_MAXSIZE());
        if (bytes.get(INT, 0) != MAGIC) {
            throw new IllegalArgumentException("the peer's handle is not Millrace's; does every rank use this plugin?");
        }
        byte version = bytes.get(ValueLayout.JAVA_BYTE, VERSION_OFFSET);
        if (version != VERSION) {
            throw new IllegalArgumentException("the peer's handle has version " + version + ", this side's has "
                    + VERSION + "; install the same release of Millrace for every rank");
        }
        byte[] address = bytes.asSlice(ADDRESS_OFFSET, Listener.ADDRESS_BYTES).toArray(ValueLayout.JAVA_BYTE);
        return new PeerHandle(bytes.get(ValueLayout.JAVA_BYTE, PATH_OFFSET),
                new ConnectionKey(bytes.get(LONG, KEY_HIGH_OFFSET), bytes.get(LONG, KEY_LOW_OFFSET)), address);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof PeerHandle that && path == that.path && key.equals(that.key)
                && Arrays.equals(address, that.address);
    }

    @Override
    public int hashCode() {
        return key.hashCode();
    }

    @Override
    public String toString() {
        return "connection " + key + " of path " + path;
    }
}
