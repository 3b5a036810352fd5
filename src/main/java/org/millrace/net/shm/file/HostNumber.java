package org.millrace.net.shm.file;

import java.io.IOException;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/**
 * The number of this host, from what the kernel drew at random when it booted; from the host's name where the kernel
 * tells no such thing.
 */
public final class HostNumber {

    public static final long VALUE = hash(bootId());

    private HostNumber() {}

    private static String bootId() {
        try {
            return Files.readString(Path.of("/proc/sys/kernel/random/boot_id")).strip();
        } catch (IOException notLinux) {
            try {
                return InetAddress.getLocalHost().getHostName();
            } catch (IOException unnamed) {
                // Every host without a name has this number: whether two are one, the search for the listener's socket
                // tells.
                return "";
            }
        }
    }

    private static long hash(String text) {
        try {
            return ByteBuffer.wrap(MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8)))
                    .getLong();
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every JDK has SHA-256", e);
        }
    }
}
