package org.millrace.foreign;

import java.lang.foreign.MemorySegment;
import java.net.ConnectException;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/**
 * Error of Linux for which the JDK has no separate exception class. The message of the JDK's exception contains the
 * text of the C library, in the language of the process, but not the error number. The message is therefore compared
 * with the C library's text for the error number.
 */
public enum SystemError {
    BROKEN_PIPE(32, "Broken pipe"),
    NETWORK_UNREACHABLE(101, "Network is unreachable"),
    TIMED_OUT(110, "Connection timed out");

    private final String text;

    SystemError(int number, String english) {
        text = SystemError.class.getModule().isNativeAccessEnabled()
                ? CFunction.find("strerror").map(strerror -> decode(strerror.call(number))).orElse(english)
                : english;
    }

    @SuppressWarnings("restricted") // safe: the C library ends the text with a zero byte
    private static String decode(long address) {
        byte[] bytes = MemorySegment.ofAddress(address)
                .reinterpret(Integer.MAX_VALUE)
                .getString(0, StandardCharsets.ISO_8859_1)
                .getBytes(StandardCharsets.ISO_8859_1);
        return new String(bytes, Charset.forName(System.getProperty("sun.jnu.encoding")));
    }

    /** Returns whether an exception of the JDK reports this error. The JDK may append the host and the port. */
    public boolean isReasonOf(@Nullable Throwable thrown) {
        String message = thrown == null ? null : thrown.getMessage();
        return message != null && message.startsWith(text);
    }

    /** Returns whether an exception shows that the host is reachable and no process listens at the port. */
    public static boolean isRefusal(Throwable thrown) {
        return thrown instanceof ConnectException && !TIMED_OUT.isReasonOf(thrown);
    }
}
