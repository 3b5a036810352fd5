package org.millrace.plugin.settings;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Numbers in NCCL's variables, read as NCCL reads them: by C's {@code strtoll} with base 0, so that what is no number
 * is 0.
 */
public final class NcclInteger {

    private static final Pattern NUMBER =
            Pattern.compile("\\s*([+-]?(?:0[xX]\\p{XDigit}+|0[0-7]*|[1-9][0-9]*)).*", Pattern.DOTALL);

    private NcclInteger() {}

    /**
     * Reads a number.
     *
     * @param text   the variable's value, or null
     * @param absent what stands for a variable that is not set, or empty
     */
    public static long parse(String text, long absent) {
        if (text == null || text.isEmpty()) {
            return absent;
        }
        Matcher matcher = NUMBER.matcher(text);
        try {
            return matcher.matches() ? Long.decode(matcher.group(1)) : 0;
        } catch (NumberFormatException tooLarge) {
            return absent;
        }
    }
}
