/**
 * A ring in shared memory: its layout, its two sides, and the sender and the receiver on them. What the other process
 * wrote is checked before it is used. It uses {@code file}, and {@code peer} for payloads that stay in the sender's
 * memory.
 */
@NullMarked
package org.millrace.net.shm.ring;

import org.jspecify.annotations.NullMarked;
