// Progress display: nothing at first, then a thin bar, then a message.

const BAR = 300, SLOW = 3000; // milliseconds

// Return `begin`, which may be called repeatedly, and `end`, to call when nothing is pending.
export function waiting(part, say) {
  let timers = [];
  let slow = false;
  return {
    begin() {
      if (timers.length) return;
      timers = [
        setTimeout(() => part.classList.add("working"), BAR),
        setTimeout(() => { slow = true; say("Still working. The server is taking longer than usual."); }, SLOW),
      ];
    },
    end() {
      for (const timer of timers) clearTimeout(timer);
      timers = [];
      part.classList.remove("working");
      if (slow) say("");
      slow = false;
    },
  };
}
