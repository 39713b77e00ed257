// What is seen of waiting: nothing at first, then a thin bar, then a line that says so.

const BAR = 300, SLOW = 3000; // milliseconds

// Return the two ends of it: `begin` may be called again meanwhile, `end` is called once nothing is waited for.
export function waiting(part, say) {
  let timers = [];
  let slow = false;
  return {
    begin() {
      if (timers.length) return;
      timers = [
        setTimeout(() => part.classList.add("working"), BAR),
        setTimeout(() => { slow = true; say("Still at work. The server takes longer than usual."); }, SLOW),
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
