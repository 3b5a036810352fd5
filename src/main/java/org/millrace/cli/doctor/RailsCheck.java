package org.millrace.cli.doctor;

import java.net.InetAddress;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;
import org.millrace.net.socket.handshake.Interfaces;

/** Over which addresses connections to other hosts go: one is the usual case, several are rails. */
final class RailsCheck implements Check {

    private final Map<String, String> settings;

    /**
     * A check.
     *
     * @param settings settings of the command line
     */
    RailsCheck(Map<String, String> settings) {
        this.settings = settings;
    }

    @Override
    public String subject() {
        return "rails";
    }

    @Override
    public CheckResult find() {
        Configuration configuration = Configuration.load(settings);
        List<InetAddress> addresses = configuration.get(Settings.SOCKET_ADDRESSES)
                .orElseGet(() -> Interfaces.chooseAll(configuration.get(Settings.SOCKET_INTERFACES).orElse(""), null));
        return CheckResult.works(addresses.size() + " over TCP between hosts: "
                + addresses.stream().map(InetAddress::getHostAddress).collect(Collectors.joining(", ")));
    }
}
