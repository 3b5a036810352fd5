package org.millrace.engine;

import java.util.List;
import org.millrace.device.channel.DeviceEndpoint;

/**
 * The links that an operation uses together in one direction.
 *
 * @param links     in the order in which elements are combined
 * @param endpoints the device's ends of them, in the same order
 * @param <P>       the device's end of one
 */
record Hops<P>(List<Link<P>> links, List<DeviceEndpoint<P>> endpoints) {

    private static final Hops<?> NONE = new Hops<>(List.of(), List.of());

    static <P> Hops<P> of(List<Link<P>> links) {
        return new Hops<>(links, links.stream().map(Link::endpoint).toList());
    }

    @SuppressWarnings("unchecked") // there is no P in it
    static <P> Hops<P> none() {
        return (Hops<P>) NONE;
    }
}
