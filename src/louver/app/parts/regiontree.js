// Regions as a tree that folds. The server sends the lines that are seen; every name is a text node.
const LINE = 28, AHEAD = 30;
const KEYS = ["ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight", "Home", "End", "PageUp", "PageDown", "Enter", " "];
export default {
  template: `
    <div class="regions" ref="box" role="treegrid" tabindex="0" :aria-label="label" :aria-rowcount="win.n + 1" :aria-activedescendant="isSeen ? prefix + win.chosen : null"
         @scroll="scrolled" @keydown="key">
      <div class="rline rhead" role="row" aria-rowindex="1"><span v-for="(name, i) in columns" :key="i" role="columnheader" :class="{r: i === 1 || i === 2 || i === 3}">{{ name }}</span></div>
      <div role="rowgroup" class="rbody" :style="{height: win.n * 28 + 'px'}">
        <div v-for="(line, i) in win.lines" :key="line.id" role="row" class="rline" :class="{sel: line.id === win.chosen}" :id="prefix + line.id" :style="{top: (win.first + i) * 28 + 'px'}"
             :aria-rowindex="win.first + i + 2" :aria-level="line.level + 1" :aria-expanded="line.has ? String(line.open) : null" :aria-selected="String(line.id === win.chosen)"
             @click="$emit('choose', line.id)">
          <span role="gridcell" class="rname" :class="{b: line.level === 0}" :style="{paddingLeft: 4 + 16 * line.level + 'px'}" :title="line.kind + ' ' + line.name"><i class="fold" aria-hidden="true" @click="fold($event, line)">{{ line.has ? (line.open ? "▾" : "▸") : "" }}</i><input v-if="line.mark" type="checkbox" tabindex="-1" :aria-label="'In the area: ' + line.name" :checked="line.mark === 'in' || line.mark === 'within'" :indeterminate="line.mark === 'part'" :disabled="line.mark === 'within'" @click.stop.prevent="$emit('pick', line.id)">{{ line.name }}</span>
          <span role="gridcell" class="r b">{{ line.count }}</span>
          <span role="gridcell" class="r s">{{ line.error }}</span>
          <span role="gridcell" class="r s">{{ line.interval }}</span>
          <span role="gridcell"><span v-if="line.start !== undefined" class="whisker" aria-hidden="true"><i :style="{left: line.start + '%', width: line.end - line.start + '%'}"></i><b style="left:50%"></b></span></span>
          <span role="gridcell" class="s"><span v-if="line.word" class="pill" :class="line.tone">{{ line.word }}</span> {{ line.off }}</span>
        </div>
      </div>
    </div>`,
  props: { win: Object, columns: Array, label: String },
  data() {
    return { prefix: "region-" + Math.random().toString(36).slice(2, 8) + "-" };
  },
  computed: {
    isSeen() {
      return this.win.at >= this.win.first && this.win.at < this.win.first + this.win.lines.length;
    },
  },
  watch: {
    "win.at": {
      handler() {
        this.reveal();
      },
      flush: "post",
    },
  },
  methods: {
    seen() {
      const box = this.$refs.box, top = Math.floor(box.scrollTop / LINE);
      return [top, top + Math.ceil(box.clientHeight / LINE)];
    },
    scrolled() {
      const [top, bottom] = this.seen(), win = this.win;
      if (top >= win.first && Math.min(bottom, win.n) <= win.first + win.lines.length) return;
      clearTimeout(this.later);
      this.later = setTimeout(() => this.$emit("view", [Math.max(0, top - AHEAD), bottom + AHEAD]), 40);
    },
    reveal() {
      const box = this.$refs.box, at = this.win.at * LINE;
      if (at < box.scrollTop) box.scrollTop = at;
      else if (at + 2 * LINE > box.scrollTop + box.clientHeight) box.scrollTop = at + 2 * LINE - box.clientHeight;
    },
    fold(event, line) {
      if (!line.has) return;
      event.stopPropagation();
      this.$emit("toggle", line.id);
    },
    key(event) {
      if (!KEYS.includes(event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      this.$emit("press", event.key);
    },
  },
};
