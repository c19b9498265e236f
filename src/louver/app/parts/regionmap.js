// A map from outlines alone: paths are numbers, names are text nodes. Arrows go to the nearest outline on that side.
const SIDES = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
export default {
  template: `
    <svg class="regionmap" :viewBox="'-2 -2 ' + (width + 4) + ' ' + (height + 4)" role="group" aria-roledescription="map" tabindex="0" :aria-label="label" @keydown="key">
      <path v-for="shape in shapes" :key="shape.id" :d="shape.d" :class="'c' + shape.c" fill-rule="evenodd" @click="click(shape)"><title>{{ shape.words }}</title></path>
      <path v-for="shape in inArea" :key="'in' + shape.id" class="picked" :d="shape.d" fill-rule="evenodd"></path>
      <circle v-for="shape in inArea" :key="'at' + shape.id" :cx="shape.x" :cy="shape.y" r="5"></circle>
      <path v-if="own" class="own" :d="own.d" fill-rule="evenodd"></path>
    </svg>`,
  props: { shapes: Array, width: Number, height: Number, chosen: Number, picked: Array, label: String },
  computed: {
    own() {
      return this.shapes.find((shape) => shape.id === this.chosen);
    },
    inArea() {
      const picked = new Set(this.picked);
      return this.shapes.filter((shape) => picked.has(shape.id));
    },
  },
  methods: {
    click(shape) {
      this.$emit("choose", shape.id);
      this.$emit("pick", shape.id);
    },
    key(event) {
      if (event.key === " ") return event.preventDefault(), this.own && this.$emit("pick", this.own.id);
      const side = SIDES[event.key];
      if (!side || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      const from = this.own ?? { x: 0, y: 0 };
      let best = null, least = Infinity;
      for (const shape of this.shapes) {
        const dx = shape.x - from.x, dy = shape.y - from.y, along = dx * side[0] + dy * side[1], across = Math.abs(dx * side[1]) + Math.abs(dy * side[0]);
        const far = along + 2 * across;
        if (shape !== from && along > 0.5 && across <= 2 * along && far < least) (least = far), (best = shape);
      }
      if (best) this.$emit("choose", best.id), louver.say(best.words);
    },
  },
};
