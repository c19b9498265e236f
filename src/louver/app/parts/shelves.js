// Attributes as chips on shelves: by drag, or by keyboard. What is moved shows at once; what follows from it comes from the server.
export default {
  template: `
    <div class="shelves" @keydown="key" @focusin="hasFocus = true" @focusout="hasFocus = false">
      <div v-for="shelf in list" :key="shelf.key" class="shelf" :class="[shelf.key, {over: over === shelf.key}]" role="group"
           :aria-label="shelf.title" @dragover.prevent="over = shelf.key" @dragleave="over = ''" @drop.prevent="drop($event, shelf)">
        <b>{{ shelf.title }}</b>
        <button v-for="chip in shelf.chips" :key="chip.name" type="button" class="chip" :class="{mark: chip.is_merged}" draggable="true"
                :data-chip="chip.name" :data-name="chip.name" :tabindex="chip.name === current ? 0 : -1" :title="hint" @focus="current = chip.name"
                @dragstart="start($event, chip.name)" @click="$emit('open', chip.name)">
          <span class="grip" aria-hidden="true"></span>{{ chip.name }} <em>{{ chip.size }}</em>
        </button>
        <span v-if="!shelf.chips.length" class="sub s">{{ shelf.empty }}</span>
      </div>
    </div>`,
  props: { shelves: Array },
  data() {
    return { list: [], current: "", over: "", dragged: "", hasFocus: false, hint: "R, C, O move it; Alt and arrows reorder; Enter merges or splits its categories" };
  },
  watch: {
    shelves: {
      immediate: true,
      handler(given) {
        this.list = JSON.parse(JSON.stringify(given));
        const names = this.list.flatMap((shelf) => shelf.chips.map((chip) => chip.name));
        if (!names.includes(this.current)) this.current = names[0] ?? "";
        this.refocus(); // an answer to an earlier move puts chips back for a moment, and what is put elsewhere loses the focus
      },
    },
  },
  methods: {
    start(event, name) {
      this.dragged = name;
      event.dataTransfer.effectAllowed = "move";
      event.dataTransfer.setData("text/plain", "");
    },
    drop(event, shelf) {
      this.over = "";
      if (!this.dragged) return;
      const chips = [...event.currentTarget.querySelectorAll(".chip")].filter((chip) => chip.dataset.chip !== this.dragged);
      const index = chips.filter((chip) => {
        const box = chip.getBoundingClientRect();
        return box.bottom < event.clientY || (box.top < event.clientY && box.left + box.width / 2 < event.clientX);
      }).length;
      this.move(this.dragged, shelf.key, index);
      this.dragged = "";
    },
    place(name) {
      for (const shelf of this.list) {
        const index = shelf.chips.findIndex((chip) => chip.name === name);
        if (index >= 0) return [shelf, index];
      }
    },
    move(name, to, index) {
      const [from, old] = this.place(name);
      const target = this.list.find((shelf) => shelf.key === to);
      const [chip] = from.chips.splice(old, 1);
      index = Math.max(0, Math.min(index, target.chips.length));
      target.chips.splice(index, 0, chip);
      this.current = name;
      this.refocus();
      if (from !== target || old !== index) this.$emit("move", { name, to, index });
    },
    refocus() {
      if (!this.hasFocus) return;
      this.$nextTick(() => {
        const now = document.activeElement;
        if (now !== document.body && !this.$el.contains(now)) return; // somebody has gone on
        [...this.$el.querySelectorAll(".chip")].find((chip) => chip.dataset.chip === this.current)?.focus();
      });
    },
    go(name) {
      this.current = name;
      this.hasFocus = true;
      this.refocus();
    },
    key(event) {
      const name = event.target.dataset?.chip;
      if (name === undefined || event.ctrlKey || event.metaKey) return;
      const [shelf, index] = this.place(name);
      const number = this.list.indexOf(shelf);
      const flat = this.list.flatMap((one) => one.chips.map((chip) => chip.name));
      const to = { r: "rows", c: "cols", o: "out" }[event.key.toLowerCase()];
      const side = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const level = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (to && !event.altKey) this.move(name, to, 999);
      else if (side && event.altKey) this.move(name, shelf.key, index + side);
      else if (level && event.altKey) this.move(name, (this.list[number + level] ?? shelf).key, 999);
      else if (side) this.go(flat[(flat.indexOf(name) + side + flat.length) % flat.length]);
      else if (level) this.go((this.list[number + level] ?? shelf).chips[0]?.name ?? name);
      else if (event.key === "m") this.$emit("open", name);
      else if (event.key === "s") this.$emit("split", name);
      else return;
      event.preventDefault();
      event.stopPropagation();
    },
  },
};
