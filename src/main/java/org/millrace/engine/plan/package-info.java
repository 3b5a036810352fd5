/**
 * How operations become kernels: which function runs them, over which channels, in which order; what the proxies hear
 * before each run; and the launch. Nothing here runs on the device's thread. Uses {@code connect}, {@code options} and
 * the device's packages.
 */
@NullMarked
package org.millrace.engine.plan;

import org.jspecify.annotations.NullMarked;
