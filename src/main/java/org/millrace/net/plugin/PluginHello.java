package org.millrace.net.plugin;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.connection.HelloFormat;
import org.millrace.net.connection.PeerText;

/**
 * The first message of the connecting side, little-endian. It contains the fields that every network's hello has, the
 * name of this side's plugin, and this side's limits.
 *
 * <pre>
 *   0         8         12    16       32     40     48    56       60       64       72       80             144
 *   +---------+---------+-----+--------+------+------+-----+--------+--------+--------+--------+--------------+
 *   | magic   | version | 0   | secret | key  | key  | pid | inline | maxi-  | piece  | kinds  | name of the  |
 *   | 8 chars | u32     |     | 16 B   | high | low  | i64 | bytes  | mum of | bytes  | of     | plugin, 0    |
 *   |         |         |     |        |      |      |     | i32    | recvs  | i64    | memory |              |
 *   +---------+---------+-----+--------+------+------+-----+--------+--------+--------+--------+--------------+
 * </pre>
 *
 * @param pid    ID of the connecting process in its own PID namespace, for messages only
 * @param sizes  limits of the connecting side
 * @param plugin name in the plugin's table
 */
record PluginHello(long pid, FrameSizes sizes, String plugin) {

    static final HelloFormat FORMAT = new HelloFormat("MILLNCCL", MessageFormat.VERSION, 144);

    private static final int PID_OFFSET = 48;
    private static final int INLINE_OFFSET = 56;
    private static final int RECVS_OFFSET = 60;
    private static final int PIECE_OFFSET = 64;
    private static final int KINDS_OFFSET = 72;
    private static final int NAME_OFFSET = 80;

    ByteBuffer encode(byte[] secret, ConnectionKey key) {
        return FORMAT.encode(secret, key)
                .putLong(PID_OFFSET, pid)
                .putInt(INLINE_OFFSET, sizes.inlineBytes())
                .putInt(RECVS_OFFSET, sizes.maxRecvs())
                .putLong(PIECE_OFFSET, sizes.pieceBytes())
                .putInt(KINDS_OFFSET, sizes.kinds())
                .put(NAME_OFFSET, name(plugin));
    }

    /** Returns the bytes of a plugin's name in the hello. A name that is too long is cut. */
    static byte[] name(String plugin) {
        byte[] name = plugin.getBytes(StandardCharsets.UTF_8);
        return Arrays.copyOf(name, Math.min(name.length, FORMAT.bytes() - NAME_OFFSET));
    }

    static PluginHello decode(ByteBuffer bytes) {
        byte[] name = new byte[FORMAT.bytes() - NAME_OFFSET];
        bytes.get(NAME_OFFSET, name);
        return new PluginHello(bytes.getLong(PID_OFFSET),
                new FrameSizes(bytes.getInt(INLINE_OFFSET), bytes.getLong(PIECE_OFFSET), bytes.getInt(RECVS_OFFSET),
                        bytes.getInt(KINDS_OFFSET)),
                PeerText.line(new String(name, StandardCharsets.UTF_8).replace("\0", "")));
    }

    /**
     * The data that the listening side sends behind its reply: the smaller of both sides' values for each limit, and
     * the handles of the listeners of this side's plugin.
     *
     * <pre>
     *   0        4        8        16       20       24             152            280
     *   +--------+--------+--------+--------+--------+--------------+--------------+
     *   | inline | maxi-  | piece  | device | kinds  | handle for   | handle for   |
     *   | bytes  | mum of | bytes  | number | of     | messages     | payloads     |
     *   | i32    | recvs  | i64    | i32    | memory | 128 bytes    | 128 bytes    |
     *   +--------+--------+--------+--------+--------+--------------+--------------+
     * </pre>
     *
     * @param device index of the listening device among the devices that the listening side uses
     */
    record Answer(FrameSizes sizes, int device, byte[] messages, byte[] payloads) {

        static final int HANDLE_BYTES = plugin_h.NCCL_NET_HANDLE_MAXSIZE();
        static final int BYTES = 24 + 2 * HANDLE_BYTES;

        private static final int RECVS_OFFSET = 4;
        private static final int PIECE_OFFSET = 8;
        private static final int DEVICE_OFFSET = 16;
        private static final int KINDS_OFFSET = 20;
        private static final int MESSAGES_OFFSET = 24;
        private static final int PAYLOADS_OFFSET = MESSAGES_OFFSET + HANDLE_BYTES;

        ByteBuffer encode() {
            return ByteBuffer.allocate(BYTES)
                    .order(ByteOrder.LITTLE_ENDIAN)
                    .putInt(0, sizes.inlineBytes())
                    .putInt(RECVS_OFFSET, sizes.maxRecvs())
                    .putLong(PIECE_OFFSET, sizes.pieceBytes())
                    .putInt(DEVICE_OFFSET, device)
                    .putInt(KINDS_OFFSET, sizes.kinds())
                    .put(MESSAGES_OFFSET, messages)
                    .put(PAYLOADS_OFFSET, payloads);
        }

        static Answer decode(ByteBuffer bytes) {
            byte[] messages = new byte[HANDLE_BYTES];
            byte[] payloads = new byte[HANDLE_BYTES];
            bytes.get(MESSAGES_OFFSET, messages);
            bytes.get(PAYLOADS_OFFSET, payloads);
            FrameSizes sizes = new FrameSizes(bytes.getInt(0), bytes.getLong(PIECE_OFFSET), bytes.getInt(RECVS_OFFSET),
                    bytes.getInt(KINDS_OFFSET));
            int device = bytes.getInt(DEVICE_OFFSET);
            if (!sizes.isPlausible(PluginDevice.MAX_RECVS) || device < 0) {
                throw new ConnectionException(
                        "the listener's answer is damaged: it states " + sizes + ", device " + device);
            }
            return new Answer(sizes, device, messages, payloads);
        }
    }
}
