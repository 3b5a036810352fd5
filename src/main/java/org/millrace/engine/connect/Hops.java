package org.millrace.engine.connect;

import java.util.List;
import org.millrace.device.channel.DeviceEndpoint;

/**
 * The connectors that an operation uses together in one direction.
 *
 * @param connectors in the order in which elements are combined
 * @param endpoints  the device's ends of them, in the same order
 * @param <P>        the device's end of one
 */
public record Hops<P>(List<Connector<P>> connectors, List<DeviceEndpoint<P>> endpoints) {

    private static final Hops<?> NONE = new Hops<>(List.of(), List.of());

    public static <P> Hops<P> of(List<Connector<P>> connectors) {
        return new Hops<>(connectors, connectors.stream().map(Connector::endpoint).toList());
    }

    @SuppressWarnings("unchecked") // there is no P in it
    public static <P> Hops<P> none() {
        return (Hops<P>) NONE;
    }
}
