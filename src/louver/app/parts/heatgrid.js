// The table on a canvas, fed with the lines and columns that are seen. Labels are drawn or put into text nodes, never into HTML.
const LINE = 24, HEAD = 22, LEAST = 70, GAP = 2, AHEAD = 40;
const TALLEST = 1.2e7; // px: browsers end at about 33 million; of more lines a step of the scroll bar goes over several
const STATE = ["zero", "small", "certain", "exact", "narrow", "safe"];
const FLASH = 1600; // ms that cells stay outlined which knowledge has just made fall; without motion they stay so until the next change
const MARK = ["", "S", "C", "E", "N", ""];
const SPOKEN = ["exact zero", "exact and small", "reveals a status", "exact", "narrow", "safe"];
const SCALE = { states: STATE, marks: MARK, spoken: SPOKEN }; // a window may bring another; its first state is hatched
export default {
  template: `
    <div class="heatgrid" role="grid" tabindex="0" :aria-rowcount="n_lines" :aria-colcount="n_cols" aria-label="The table, each cell coloured by what is disclosed"
         :aria-activedescendant="mirror ? 'heat-cell' : null" @keydown="key" @focus="focused = true; draw()" @blur="focused = false; draw()">
      <canvas ref="canvas" aria-hidden="true"></canvas>
      <div ref="scroller" class="scroller" @scroll="scrolled" @mousemove="hover" @mouseleave="leave" @click="click">
        <div :style="{height: tall + 'px', width: full + 'px'}"></div>
      </div>
      <div class="announcer" role="row"><div id="heat-cell" role="gridcell" aria-live="polite">{{ mirror }}</div></div>
      <div v-if="tip && at" ref="tipbox" class="tip" :class="{pinned}" :style="place" role="tooltip">
        <div class="row between"><span class="row"><span class="sw" :class="'d-' + tip.state">{{ letter }}</span><b class="b">{{ tip.title }}</b></span>
          <span class="s sub nowrap">published {{ tip.published }}</span></div>
        <p class="s sub where">{{ tip.where }}</p>
        <svg v-if="tip.dots.length" width="284" height="26" viewBox="0 0 284 26" aria-hidden="true"><path class="axis" d="M8 10H276"/><path v-if="tip.is_range" d="M14 10H266" stroke="var(--control)" stroke-width="5"/>
          <template v-for="(dot, i) in dots" :key="i"><circle :cx="dot.x" cy="10" r="4" :fill="'var(--d-' + tip.state + ')'" stroke="var(--control)"/>
            <text v-if="dot.text" class="axl" :x="dot.x" y="25" text-anchor="middle">{{ dot.text }}</text></template></svg>
        <p class="s"><b class="b">Why: </b>{{ tip.why }}</p>
      </div>
    </div>`,
  props: { win: Object, tip: Object },
  data() {
    return { n_lines: 0, n_cols: 0, heads: 0, full: 0, tall: 0, at: null, pinned: false, focused: false, mirror: "", place: {} };
  },
  computed: {
    letter() {
      return this.shades.marks[this.shades.states.indexOf(this.tip.state)] || (this.tip.state === "zero" ? "0" : "");
    },
    shades() {
      return this.win?.scale ?? SCALE;
    },
    dots() {
      const all = this.tip.dots, least = all[0], most = Math.max(all[all.length - 1], least + 1);
      const step = all.length === 1 ? 0 : 252 / (most - least);
      const every = Math.ceil(all.length / 6);
      return all.map((value, i) => ({ x: all.length === 1 ? 24 : 14 + (value - least) * step, text: i % every === 0 || i === all.length - 1 ? value.toLocaleString("en") : "" }));
    },
  },
  watch: {
    win() {
      this.take();
    },
    tip() {
      this.$nextTick(() => this.hold());
      if (this.tip && this.at && this.focused) this.mirror = `${this.tip.where}: ${this.tip.title}. ${this.shades.spoken[this.shades.states.indexOf(this.tip.state)]}`;
    },
  },
  mounted() {
    this.watcher = new ResizeObserver(() => this.take());
    this.watcher.observe(this.$el);
    this.themed = () => this.draw();
    window.addEventListener("louver-theme", this.themed);
    document.fonts?.ready.then(() => this.draw());
    this.take();
  },
  unmounted() {
    this.watcher.disconnect();
    clearTimeout(this.calming);
    window.removeEventListener("louver-theme", this.themed);
  },
  methods: {
    take() {
      if (!this.win) return;
      const isOther = this.win.table !== this.table;
      this.table = this.win.table;
      this.n_lines = this.win.n_lines;
      this.n_cols = this.win.n_cols;
      this.heads = HEAD * (this.win.heads.length + 1) + 4; // the last line names the attributes of the rows
      const width = this.$el.clientWidth - 12;
      this.label = Math.min(230, Math.max(130, width * 0.3));
      this.col = Math.max(LEAST, (width - this.label) / Math.max(this.n_cols, 1));
      this.full = this.label + this.col * this.n_cols;
      const real = this.heads + this.n_lines * LINE, view = this.$refs.scroller.clientHeight;
      this.tall = Math.min(real, TALLEST);
      this.scale = real > TALLEST ? (real - view) / (TALLEST - view) : 1;
      if (isOther) (this.at = null), (this.pinned = false), (this.mirror = ""), this.flash();
      if (this.at) this.settle();
      this.draw();
      this.$nextTick(() => this.hold());
    },
    flash() {
      clearTimeout(this.calming);
      this.isFlashing = this.win.lines.some((line) => line.fallen?.length);
      if (this.isFlashing && !matchMedia("(prefers-reduced-motion: reduce)").matches) this.calming = setTimeout(() => ((this.isFlashing = false), this.draw()), FLASH);
    },
    down() {
      return this.$refs.scroller.scrollTop * this.scale;
    },
    seen() {
      const box = this.$refs.scroller;
      const top = Math.floor(this.down() / LINE), left = Math.floor(box.scrollLeft / this.col);
      return { top, bottom: top + Math.ceil(box.clientHeight / LINE) + 1, left, right: left + Math.ceil(box.clientWidth / this.col) + 1 };
    },
    scrolled() {
      this.draw();
      const { top, bottom, left, right } = this.seen(), win = this.win;
      const isMissing = (top < win.first && top < win.n_lines) || Math.min(bottom, win.n_lines) > win.first + win.lines.length ||
        left < win.left || Math.min(right, win.n_cols) > win.left + (win.heads.at(-1)?.labels.length ?? 0);
      if (!isMissing) return;
      clearTimeout(this.later);
      this.later = setTimeout(() => this.$emit("view", { lines: [Math.max(0, top - AHEAD), bottom + AHEAD], cols: [Math.max(0, left - 10), right + 10] }), 40);
    },
    draw() {
      const canvas = this.$refs.canvas, box = this.$refs.scroller;
      if (!canvas || !this.win || !this.col) return;
      const ratio = window.devicePixelRatio || 1, width = this.$el.clientWidth, height = this.$el.clientHeight;
      canvas.width = width * ratio;
      canvas.height = height * ratio;
      canvas.style.width = width + "px";
      canvas.style.height = height + "px";
      const g = canvas.getContext("2d"), ink = louver.color("--ink"), soft = louver.color("--ink-2");
      g.scale(ratio, ratio);
      g.textBaseline = "middle";
      const { top, bottom } = this.seen();
      for (let line = top; line < bottom; line++) this.line(g, line, this.heads + line * LINE - this.down(), width, ink, soft);
      this.header(g, width, box.scrollLeft, ink, soft);
    },
    line(g, number, y, width, ink, soft) {
      const line = this.win.lines[number - this.win.first];
      if (!line) return;
      if (line.group !== undefined) {
        g.fillStyle = louver.color("--sunken");
        this.round(g, 2, y + 1, width - 14, LINE - 2);
        g.fillStyle = ink;
        g.font = "500 12px Roboto, sans-serif";
        g.textAlign = "left";
        g.fillText(line.folded ? "▸" : "▾", 10, y + LINE / 2);
        const name = this.fit(g, line.label, width - 240);
        g.fillText(name, 26, y + LINE / 2);
        const x = 38 + g.measureText(name).width;
        g.fillStyle = soft;
        g.font = "400 12px Roboto, sans-serif";
        g.fillText(this.fit(g, line.words, width - x - 20), x, y + LINE / 2);
        return;
      }
      const left = this.$refs.scroller.scrollLeft;
      line.states.forEach((state, i) => {
        const col = this.win.left + i, x = this.label + col * this.col - left;
        if (x + this.col < this.label || x > width) return;
        this.cell(g, x, y, state, line.texts[i], number, col);
        if (this.isFlashing && line.fallen?.includes(i)) this.outline(g, x, y);
      });
      g.fillStyle = louver.color("--surface");
      g.fillRect(0, y, this.label, LINE);
      g.fillStyle = ink;
      g.font = "400 12px Roboto, sans-serif";
      g.textAlign = "left";
      g.fillText(this.fit(g, line.label, this.label - 14), 8, y + LINE / 2);
    },
    cell(g, x, y, state, text, line, col) {
      const name = this.shades.states[state], mark = this.shades.marks[state], w = this.col - GAP, h = LINE - GAP;
      g.fillStyle = louver.color("--d-" + name);
      this.round(g, x, y + 1, w, h);
      if (state === 0) this.hatch(g, x, y + 1, w, h, text !== "");
      g.fillStyle = louver.color(`--d-${name}-ink`);
      g.font = "400 12px Roboto, sans-serif";
      g.textAlign = "center";
      g.fillText(text, x + w / 2, y + LINE / 2 + 0.5);
      if (mark) {
        g.font = "700 10px Roboto, sans-serif";
        g.textAlign = "left";
        g.fillText(mark, x + 4, y + LINE / 2 + 0.5);
      }
      if (this.at && this.at.line === line && this.at.col === col) {
        g.strokeStyle = louver.color("--ink");
        g.lineWidth = 2;
        g.strokeRect(x + 1, y + 2, w - 2, h - 2);
      }
    },
    outline(g, x, y) {
      g.strokeStyle = louver.color("--ink");
      g.lineWidth = 2;
      g.setLineDash([4, 2]);
      g.strokeRect(x + 1, y + 2, this.col - GAP - 2, LINE - GAP - 2);
      g.setLineDash([]);
    },
    hatch(g, x, y, w, h, hasText) {
      g.save();
      g.beginPath();
      g.rect(x, y, w, h);
      g.clip();
      g.strokeStyle = louver.color("--d-hatch");
      g.lineWidth = 1;
      g.beginPath();
      for (let i = -h; i < w; i += 6) g.moveTo(x + i, y + h), g.lineTo(x + i + h, y);
      g.stroke();
      g.fillStyle = louver.color("--d-zero");
      if (hasText) g.fillRect(x + w / 2 - 7, y + 3, 14, h - 6);
      g.restore();
    },
    header(g, width, left, ink, soft) {
      g.fillStyle = louver.color("--surface");
      g.fillRect(0, 0, width, this.heads);
      this.win.heads.forEach((head, level) => {
        const y = level * HEAD + HEAD / 2 + 1;
        let col = this.win.left;
        g.font = "500 12px Roboto, sans-serif";
        g.fillStyle = soft;
        for (const [label, n] of head.labels) {
          const x = this.label + col * this.col - left, w = n * this.col;
          g.textAlign = "center";
          if (x + w > this.label && x < width) g.fillText(this.fit(g, label, w - 6), x + w / 2 - GAP / 2, y);
          col += n;
        }
        g.fillStyle = louver.color("--surface");
        g.fillRect(0, level * HEAD, this.label, HEAD);
        g.fillStyle = ink;
        g.textAlign = "left";
        g.fillText(this.fit(g, head.name, this.label - 14), 8, y);
      });
      const y = this.win.heads.length * HEAD + HEAD / 2 + 1;
      g.font = "500 12px Roboto, sans-serif";
      g.textAlign = "left";
      g.fillStyle = ink;
      g.fillText(this.fit(g, this.win.row_names.join(" · "), width - 20), 8, y);
      g.strokeStyle = louver.color("--line");
      g.beginPath();
      g.moveTo(0, this.heads - 1.5);
      g.lineTo(width - 12, this.heads - 1.5);
      g.stroke();
    },
    round(g, x, y, w, h) {
      g.beginPath();
      g.roundRect(x, y, w, h, 3);
      g.fill();
    },
    fit(g, text, width) {
      if (g.measureText(text).width <= width) return text;
      let most = text.length;
      while (most > 1 && g.measureText(text.slice(0, most) + "…").width > width) most = Math.floor(most * 0.9);
      return text.slice(0, most) + "…";
    },
    under(event) {
      const box = this.$refs.scroller, area = box.getBoundingClientRect();
      const y = event.clientY - area.top, x = event.clientX - area.left;
      if (y < this.heads) return null;
      const number = Math.floor((y - this.heads + this.down()) / LINE), line = this.win.lines[number - this.win.first];
      if (!line) return null;
      if (line.group !== undefined) return { group: line.group };
      const col = Math.floor((x - this.label + box.scrollLeft) / this.col);
      return x < this.label || col < 0 || col >= this.n_cols ? null : { line: number, row: line.row, col };
    },
    hover(event) {
      if (this.pinned) return;
      const cell = this.under(event);
      this.$refs.scroller.style.cursor = cell?.group !== undefined ? "pointer" : "default";
      if (cell?.group !== undefined || !cell) return this.leave();
      if (this.at && this.at.line === cell.line && this.at.col === cell.col) return;
      this.select(cell);
    },
    leave() {
      if (this.pinned || !this.at || this.focused) return;
      this.at = null;
      this.draw();
    },
    click(event) {
      const cell = this.under(event);
      if (cell?.group !== undefined) return this.$emit("fold", cell.group);
      if (!cell) return;
      this.pinned = !(this.pinned && this.at && this.at.line === cell.line && this.at.col === cell.col);
      this.select(cell);
      this.$emit("pin", this.pinned ? { row: cell.row, col: cell.col } : null);
    },
    select(cell) {
      this.at = cell;
      this.settle();
      this.draw();
      clearTimeout(this.asking);
      this.asking = setTimeout(() => this.$emit("cell", { row: cell.row, col: cell.col }), 60);
    },
    settle() {
      // The tooltip goes beside the chosen cell, again when the window changes its size.
      const box = this.$refs.scroller, cell = this.at;
      const x = this.label + cell.col * this.col - box.scrollLeft, y = this.heads + cell.line * LINE - this.down();
      const isLow = y > box.clientHeight - 190 && y > 150;
      const side = Math.max(4, Math.min(x + this.col / 2 - 156, this.$el.clientWidth - 320));
      this.place = isLow ? { left: side + "px", bottom: this.$el.clientHeight - y + 6 + "px" } : { left: side + "px", top: y + LINE + 6 + "px" };
    },
    hold() {
      // Whatever it says, the tooltip stays inside the window.
      const box = this.$refs.tipbox;
      if (!box) return;
      box.style.transform = "";
      const area = box.getBoundingClientRect(), edge = 8;
      const over = Math.min(0, window.innerWidth - edge - area.right) || Math.max(0, edge - area.left);
      const below = Math.min(0, window.innerHeight - edge - area.bottom), down = below + Math.max(0, edge - area.top - below);
      box.style.transform = `translate(${over}px, ${down}px)`;
    },
    goto(line, col) {
      const box = this.$refs.scroller, y = line * LINE;
      if (y < this.down()) box.scrollTop = Math.floor(y / this.scale);
      if (y + LINE > this.down() + box.clientHeight - this.heads) box.scrollTop = Math.ceil((y + LINE - box.clientHeight + this.heads) / this.scale);
      if (col * this.col < box.scrollLeft) box.scrollLeft = col * this.col;
      if ((col + 1) * this.col > box.scrollLeft + box.clientWidth - this.label) box.scrollLeft = (col + 1) * this.col - box.clientWidth + this.label;
      const found = this.win.lines[line - this.win.first];
      if (found && found.group === undefined) this.select({ line, row: found.row, col });
      else this.at = { line, col }, this.draw();
    },
    key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const at = this.at ?? { line: -1, col: 0 }, step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (step) {
        let line = at.line + step[0];
        while (step[0] && this.win.lines[line - this.win.first]?.group !== undefined) line += step[0];
        if (line >= 0 && line < this.n_lines) this.goto(line, Math.max(0, Math.min(at.col + step[1], this.n_cols - 1)));
      } else if (event.key === "Home") this.goto(Math.max(at.line, 0), 0);
      else if (event.key === "End") this.goto(Math.max(at.line, 0), this.n_cols - 1);
      else if (event.key === "n") this.$emit("next", { line: Math.max(at.line, 0), col: this.at ? at.col : -1 });
      else if (event.key === "Enter" && at.row !== undefined) (this.pinned = !this.pinned), this.$emit("pin", this.pinned ? { row: at.row, col: at.col } : null);
      else if (event.key === "Escape" && this.at) (this.pinned = false), (this.at = null), this.draw();
      else return;
      event.preventDefault();
      event.stopPropagation();
    },
  },
};
