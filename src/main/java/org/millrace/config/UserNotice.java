package org.millrace.config;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What a user has to see, however logging is set up: Log4j shows errors alone where nothing configures it. Each text
 * comes once.
 */
public final class UserNotice {

    private static final Set<String> SAID = ConcurrentHashMap.newKeySet();

    private UserNotice() {}

    /**
     * Says something on standard error, unless it was said before.
     *
     * @param text what it is, and what to do
     */
    public static void say(String text) {
        if (SAID.add(text)) {
            System.err.println("millrace: " + text);
        }
    }
}
