package org.millrace.plugin.path;

import org.millrace.MillraceException;
import org.millrace.config.Configuration;

/** Prints the location of the plugin, or the reason why this machine has no plugin. */
public final class Announce {

    private Announce() {}

    public static void main(String[] settings) {
        try (NetEndpoint endpoint = NetEndpoint.open(Configuration.ofPlugin(name -> {
            for (String each : settings) {
                if (each.startsWith(name + "=")) {
                    return each.substring(name.length() + 1);
                }
            }
            return name.equals("MILLRACE_NET") ? "socket" : null;
        }))) {
            System.out.println(endpoint);
        } catch (MillraceException e) {
            System.out.println("refused: " + e.getMessage());
        }
    }
}
