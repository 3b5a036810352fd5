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
 * Memory that processes of one user share. The memory is a {@link SealedFile} if the operating system supports sealed
 * files and all processes can open the file. Otherwise the memory is a file in a directory. The file has a random name
 * and mode 0600, and only these processes open it. It is deleted when all processes have mapped it. If the creator is
 * killed earlier, the next listener in the directory deletes the file.
 */
public final class SharedMemory implements AutoCloseable {

    /** Number of words of a {@link #key}. */
    public static final int KEY_WORDS = 4;
    private static final Path NOWHERE = Path.of("");

    private final Path directory;
    private final FileName name;
    /** File that this process created for other processes; null if another process created the memory. */
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
     * Creates memory of zeros in a file of a directory. This process writes to all pages of the memory first, so that
     * the pages are on the process's NUMA node. The file exists until {@link #open} in the other process,
     * {@link #deleteFile} or {@link #close} deletes it.
     *
     * @throws ShmUnavailableException if not enough memory is available
     */
    public static SharedMemory create(Path directory, long bytes) {
        try {
            return map(directory, SharedFile.create(directory, FileName.MEMORY, bytes, bytes), bytes);
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

    /** Returns the same number in all processes that can share sealed memory; 0 if this process cannot share it. */
    public static long sealedDomain() {
        return SealedFile.domain();
    }

    /** Creates sealed memory of zeros, for processes with the same {@link #sealedDomain}. */
    public static SharedMemory createSealed(long bytes) {
        try {
            return map(NOWHERE, SharedFile.createSealed(bytes, bytes), bytes);
        } catch (IOException e) {
            throw new ShmUnavailableException("cannot make shared memory of " + bytes + " bytes: " + e.getMessage()
                    + "; set NCCL_SHM_DISABLE=1, or a smaller NCCL_BUFFSIZE", e);
        }
    }

    /**
     * Maps memory that another process created. Deletes the memory's file if the file is in a directory, so that no
     * third process can map the memory.
     *
     * @param name name of the memory, as {@link #name} returned it in the other process
     */
    public static SharedMemory open(Path directory, String name, long bytes) {
        FileName parsed = FileName.parse(name); // a parsed name contains no slash, so the file is in the directory
        if (parsed == null || !(parsed.isSealed() || parsed.kind().equals(FileName.MEMORY))) {
            throw new ShmUnavailableException("\"" + name + "\" is not a name of Millrace's shared memory");
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

    /**
     * Does the same as {@link #open(Path, String, long)}, for a caller that has the {@link #key} instead of the name.
     */
    public static SharedMemory open(Path directory, long[] key, long bytes) {
        return open(directory, nameOf(key).toString(), bytes);
    }

    /**
     * Maps memory that more than two processes share. Does not delete the memory's file. The creator of the memory
     * deletes the file by {@link #deleteFile}.
     */
    public static SharedMemory join(Path directory, long[] key, long bytes) {
        return map(directory, nameOf(key), bytes);
    }

    /**
     * Returns the file name that a key represents. The lower half of the key's second word is the process ID. The upper
     * half of this word is the file's descriptor plus one, or 0 for a file in a directory.
     */
    private static FileName nameOf(long[] key) {
        int descriptor = (int) (key[1] >> Integer.SIZE) - 1;
        ProcessIdentity owner = new ProcessIdentity(key[1] & 0xFFFF_FFFFL, key[2], key[3]);
        return descriptor < 0 ? new FileName(key[0], owner, FileName.MEMORY)
                : FileName.sealed(key[0], owner, descriptor);
    }

    /** Deletes the memory's file. Called when all processes have mapped the memory. May be called twice. */
    public void deleteFile() {
        if (made != null) {
            made.withdraw();
        } else {
            SharedFile.withdraw(directory, name);
        }
    }

    /**
     * Returns a text that identifies the host, the directory and the user. Two processes with the same text can share
     * memory through files in their directories.
     */
    public static String place(Path directory) {
        try {
            if (!Files.isWritable(directory)) {
                throw new ShmUnavailableException(directory + " is not a directory that this user can write to");
            }
            return "host " + Long.toHexString(thisHost()) + ", device " + Files.getAttribute(directory, "unix:dev")
                    + ", user " + User.text(User.ID);
        } catch (IOException | UnsupportedOperationException e) {
            throw new ShmUnavailableException("cannot identify the directory " + directory + ": " + e, e);
        }
    }

    /**
     * Returns a number that identifies this host and its current boot. Two processes with different numbers cannot
     * share memory. Two processes with the same number usually can share memory, unless they are in containers with
     * separate directories.
     */
    public static long thisHost() {
        return ThisHost.NUMBER;
    }

    /** The number of this host: a hash of Linux's boot ID, or a hash of the host name if Linux reports no boot ID. */
    private static final class ThisHost {

        static final long NUMBER = hash(bootId());

        private static String bootId() {
            try {
                return Files.readString(Path.of("/proc/sys/kernel/random/boot_id")).strip();
            } catch (IOException notLinux) {
                try {
                    return InetAddress.getLocalHost().getHostName();
                } catch (IOException unnamed) {
                    // All hosts without a name have the same number. The search for the listener's socket then shows
                    // whether the hosts are different.
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

    /** Returns the name that another process needs to open the memory. */
    public String name() {
        return name.toString();
    }

    /** Returns the {@link #name} in the form of {@value #KEY_WORDS} numbers, for callers that cannot send a text. */
    public long[] key() {
        long descriptor = name.isSealed() ? name.descriptor() + 1L : 0;
        return new long[] {name.id(), name.owner().pid() | descriptor << Integer.SIZE, name.owner().startTicks(),
                name.owner().namespace()};
    }

    /** Returns the memory as a segment of the global scope. The segment must not be accessed after {@link #close}. */
    public MemorySegment segment() {
        return mapping.segment();
    }

    /** Unmaps the memory. Deletes its file if the file still exists. May be called twice. */
    @Override
    public synchronized void close() {
        if (mapping.isOpen()) {
            mapping.close();
            deleteFile();
        }
    }

    /**
     * The mapped bytes of a file, as a segment of the global scope. The segment must not be accessed after
     * {@link #close}. Threads poll this memory, and the global scope avoids a liveness check in each access. A close
     * therefore cannot detect an access by another thread.
     */
    public static final class Mapping implements AutoCloseable {

        private final Arena arena = Arena.ofShared();
        private final MemorySegment segment;

        @SuppressWarnings("restricted") // the new segment has the bounds of the mapping
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

        /** Unmaps the bytes. May be called twice. */
        @Override
        public synchronized void close() {
            if (isOpen()) {
                arena.close();
            }
        }
    }
}
