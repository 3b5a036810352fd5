package org.millrace.net.shm;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel.MapMode;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import org.jspecify.annotations.Nullable;
import org.millrace.file.FileName;
import org.millrace.file.ProcessIdentity;
import org.millrace.file.User;

/**
 * Memory that processes of one user share. Where the kernel has it and all of them can reach it, nobody can make it
 * shorter ({@link SealedFile}). Elsewhere it is in a file that only these processes ever open: it has a random name and
 * mode 0600, and is deleted as soon as the second of two processes, or the last of several, has mapped it. A file whose
 * maker was killed before that is deleted by the next listener that opens in its directory.
 */
public final class SharedMemory implements AutoCloseable {

    /** Length of a {@link #key}. */
    public static final int KEY_WORDS = 4;
    private static final Path NOWHERE = Path.of("");

    private final Path directory;
    private final FileName name;
    /** What others open; null where another process made it. */
    private final @Nullable SharedFile made;
    private final Mapping mapping;

    private SharedMemory(Path directory, FileName name, @Nullable SharedFile made, FileChannel channel, long bytes)
            throws IOException {
        this.directory = directory;
        this.name = name;
        this.made = made;
        mapping = new Mapping(channel, MapMode.READ_WRITE, bytes);
    }

    /**
     * Makes memory of zeros. This process touches all of its pages first, so that they lie on the memory node it runs
     * on. Its file lives until {@link #close}, or until the other process has opened it.
     *
     * @throws ShmUnavailableException if there is not so much
     */
    public static SharedMemory create(Path directory, long bytes) {
        try {
            return map(directory, SharedFile.create(directory, FileName.MEMORY, bytes), bytes);
        } catch (IOException e) {
            throw ShmUnavailableException.noRoom("shared memory", bytes, directory,
                    "set NCCL_SHM_DISABLE=1, or a smaller NCCL_BUFFSIZE", e);
        }
    }

    private static SharedMemory map(Path directory, SharedFile made, long bytes) throws IOException {
        try (FileChannel channel = made.channel()) {
            return new SharedMemory(directory, made.name(), made, channel, bytes);
        } catch (IOException e) {
            made.withdraw();
            throw e;
        }
    }

    /**
     * A number that processes have in common which can share memory that nobody can make shorter; 0 where there is none
     * of that kind.
     */
    public static long sealedDomain() {
        return SealedFile.domain();
    }

    /** Makes memory of zeros that nobody can make shorter, for processes of the same {@link #sealedDomain}. */
    public static SharedMemory createSealed(long bytes) {
        try {
            return map(NOWHERE, SharedFile.createSealed(bytes, false), bytes);
        } catch (IOException e) {
            throw new ShmUnavailableException("cannot make shared memory of " + bytes + " bytes: " + e.getMessage()
                    + "; set NCCL_SHM_DISABLE=1, or a smaller NCCL_BUFFSIZE", e);
        }
    }

    /** Maps so many bytes that another process made, and deletes their file. */
    public static SharedMemory open(Path directory, String name, long bytes) {
        FileName parsed = FileName.parse(name); // so that it has no slash in it
        if (parsed == null || !(parsed.isSealed() || parsed.kind().equals(FileName.MEMORY))) {
            throw new ShmUnavailableException("\"" + name + "\" is no name of shared memory of ours");
        }
        SharedMemory memory = map(directory, parsed, bytes);
        memory.deleteFile();
        return memory;
    }

    private static SharedMemory map(Path directory, FileName name, long bytes) {
        try (FileChannel channel = SharedFile.open(directory, name)) {
            if (channel.size() != bytes) {
                throw new IOException("it has " + channel.size() + " bytes instead of " + bytes);
            }
            return new SharedMemory(directory, name, null, channel, bytes);
        } catch (IOException e) {
            throw new ShmUnavailableException("cannot open the memory " + name + " that " + name.owner() + " shares: "
                    + e.getMessage() + (name.isSealed() ? "; NCCL_SHM_DISABLE=1 does without"
                            : "; do both processes see the directory " + directory + "?"),
                    e);
        }
    }

    /** As the other method does, by what its maker said that {@link #key} is. */
    public static SharedMemory open(Path directory, long[] key, long bytes) {
        return open(directory, nameOf(key).toString(), bytes);
    }

    /** Maps memory of which several know: its file stays until its maker calls {@link #deleteFile}. */
    public static SharedMemory join(Path directory, long[] key, long bytes) {
        return map(directory, nameOf(key), bytes);
    }

    /** The number of the descriptor, plus one, lies in the upper half of the process's; 0 where there is a file. */
    private static FileName nameOf(long[] key) {
        int descriptor = (int) (key[1] >> Integer.SIZE) - 1;
        ProcessIdentity owner = new ProcessIdentity(key[1] & 0xFFFF_FFFFL, key[2], key[3]);
        return descriptor < 0 ? new FileName(key[0], owner, FileName.MEMORY)
                : FileName.sealed(key[0], owner, descriptor);
    }

    /** All processes that need the memory have mapped it. May be called twice. */
    public void deleteFile() {
        if (made != null) {
            made.withdraw();
        } else {
            SharedFile.withdraw(directory, name);
        }
    }

    /** Whose files in which directory these are: two processes that say the same can share memory. */
    public static String place(Path directory) {
        try {
            if (!Files.isWritable(directory)) {
                throw new ShmUnavailableException(directory + " is no directory that this user can write to");
            }
            return "host " + Long.toHexString(thisHost()) + ", device " + Files.getAttribute(directory, "unix:dev")
                    + ", user " + User.text(User.ID);
        } catch (IOException | UnsupportedOperationException e) {
            throw new ShmUnavailableException("cannot tell which directory " + directory + " is: " + e, e);
        }
    }

    /**
     * A number that is another for every host, and for every boot of one: two processes with different numbers share no
     * memory. Two with the same may or may not, as containers can keep their directories to themselves.
     */
    public static long thisHost() {
        return ThisHost.NUMBER;
    }

    /**
     * Its number is of what the kernel drew at random when it booted, or of its name where the kernel tells no such
     * thing.
     */
    private static final class ThisHost {

        static final long NUMBER = hash(bootId());

        private static String bootId() {
            try {
                return Files.readString(Path.of("/proc/sys/kernel/random/boot_id")).strip();
            } catch (IOException notLinux) {
                try {
                    return InetAddress.getLocalHost().getHostName();
                } catch (IOException unnamed) {
                    // Every host without a name has this number: whether two are one, the search for the listener's
                    // socket
                    // tells.
                    return "";
                }
            }
        }

        private static long hash(String text) {
            try {
                return ByteBuffer
                        .wrap(MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8)))
                        .getLong();
            } catch (NoSuchAlgorithmException e) {
                throw new IllegalStateException("every JDK has SHA-256", e);
            }
        }
    }

    /** What another process needs to open it: the name of its file in the directory. */
    public String name() {
        return name.toString();
    }

    /** The {@link #name} in {@value #KEY_WORDS} numbers, for a caller that can tell the other process no text. */
    public long[] key() {
        long descriptor = name.isSealed() ? name.descriptor() + 1L : 0;
        return new long[] {name.id(), name.owner().pid() | descriptor << Integer.SIZE, name.owner().startTicks(),
                name.owner().namespace()};
    }

    /** A segment of the global scope, not to be touched after {@link #close}. */
    public MemorySegment segment() {
        return mapping.segment();
    }

    /** Unmaps the memory, and deletes its file if that is still there. May be called twice. */
    @Override
    public synchronized void close() {
        if (mapping.isOpen()) {
            mapping.close();
            deleteFile();
        }
    }

    /**
     * A file's bytes as memory of the global scope, not to be touched after {@link #close}: it is polled, so no access
     * checks an arena, and no close can stop one in its middle.
     */
    public static final class Mapping implements AutoCloseable {

        private final Arena arena = Arena.ofShared();
        private final MemorySegment segment;

        @SuppressWarnings("restricted") // reinterprets the mapping, within its bounds
        Mapping(FileChannel channel, MapMode mode, long bytes) throws IOException {
            try {
                MemorySegment all =
                        MemorySegment.ofAddress(channel.map(mode, 0, bytes, arena).address()).reinterpret(bytes);
                segment = mode == MapMode.READ_ONLY ? all.asReadOnly() : all;
            } catch (IOException | RuntimeException e) {
                arena.close();
                throw e;
            }
        }

        public MemorySegment segment() {
            return segment;
        }

        boolean isOpen() {
            return arena.scope().isAlive();
        }

        /** May be called twice. */
        @Override
        public synchronized void close() {
            if (isOpen()) {
                arena.close();
            }
        }
    }
}
