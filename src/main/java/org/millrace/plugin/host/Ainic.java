package org.millrace.plugin.host;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * AMD's network cards of type AINIC. If RCCL uses these cards, a plugin's {@code connect} and {@code accept} receive no
 * address of a device handle. Instead, RCCL passes the address of a structure of four bytes.
 */
public final class Ainic {

    /**
     * RCCL's variable: 1 lets RCCL use the cards, and 0 forbids them. Without the variable, RCCL decides by the host's
     * cards.
     */
    public static final String VARIABLE = "RCCL_AINIC_ROCE";

    private static final Path CARDS = Path.of("/sys/class/infiniband");
    private static final String VENDOR = "0x1dd8";

    private Ainic() {}

    /**
     * Returns whether RCCL may use such cards. RCCL uses them only if most of the cards are of this type
     * ({@code rcclUseAinic} in transport/net.cc). Without a setting, this method returns true if the host has at least
     * one card of this vendor.
     *
     * @param setting value of {@link #VARIABLE}; empty if it is unset
     */
    public static boolean mayBeUsed(String setting) {
        return mayBeUsed(setting, CARDS);
    }

    static boolean mayBeUsed(String setting, Path cards) {
        if (!setting.isBlank()) {
            return !setting.strip().equals("0");
        }
        try (DirectoryStream<Path> all = Files.newDirectoryStream(cards)) {
            for (Path card : all) {
                if (vendor(card).equals(VENDOR)) {
                    return true;
                }
            }
        } catch (IOException none) {
            // The directory does not exist, because the host has no such cards.
        }
        return false;
    }

    private static String vendor(Path card) {
        try {
            return Files.readString(card.resolve("device/vendor")).strip();
        } catch (IOException unreadable) {
            return "";
        }
    }
}
