/**
 * Faults on purpose: a network that goes wrong where a setting says, for tests of what is above it, in our builds and
 * in a user's cluster. It uses the contracts alone.
 */
@NullMarked
package org.millrace.net.fault;

import org.jspecify.annotations.NullMarked;
